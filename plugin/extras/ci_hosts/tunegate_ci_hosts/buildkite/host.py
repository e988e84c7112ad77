"""A job of Buildkite."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path

from tunegate.ci.host_files import log_annotations
from tunegate.ci.protocol import AgentCommand, AskedRevisions, CiHost, JobEvent, JobReport, Links
from tunegate_ci_hosts.buildkite.annotation import annotation_of
from tunegate_ci_hosts.buildkite.event import buildkite_event


class BuildkiteHost:
    """A job of Buildkite, by the variables that the agent gives it."""

    def __init__(self, environment: Mapping[str, str]) -> None:
        self._environment = environment

    @staticmethod
    def is_here(environment: Mapping[str, str]) -> bool:
        """Returns whether this is a Buildkite job: each has this variable."""
        return environment.get("BUILDKITE") == "true"

    def event(self, asked: AskedRevisions) -> JobEvent:
        """Returns the job's event. Raises ConfigError."""
        return buildkite_event(self._environment, asked)

    def links(self, out: Path) -> Links:
        """Returns the links; artifacts have no address before they are uploaded."""
        build, job = self._value("BUILDKITE_BUILD_URL"), self._value("BUILDKITE_JOB_ID")
        return Links(run=f"{build}#{job}" if build and job else build)

    def literal_output(self) -> AbstractContextManager[None]:
        """Changes nothing: a log has sections, but no commands that reach outside of it."""
        return nullcontext()

    def tell(self, report: JobReport) -> AgentCommand | None:
        """Reports annotations in the log, and returns the command for the build's annotation."""
        log_annotations(report.annotations)
        if not report.summary or not self._value("BUILDKITE_JOB_ID"):
            return None
        verdict = report.outputs.get("verdict", "")
        return annotation_of(self._environment, verdict, report.summary, self._artifact(report))

    def comment(
        self, event: JobEvent, name: str, markdown: str, *, updates_only: bool = False
    ) -> None:
        """Does nothing: Buildkite has no comments on pull requests, and the report is an
        annotation."""

    def _artifact(self, report: JobReport) -> str:
        """Returns the path of the HTML report if the job uploads files."""
        if not self._value("BUILDKITE_ARTIFACT_PATHS") or report.directory is None:
            return ""
        try:
            inside = Path.cwd().joinpath(report.directory).relative_to(Path.cwd())
        except (OSError, ValueError):
            return ""
        return (inside / "report.html").as_posix() if report.outputs.get("report") else ""

    def _value(self, name: str) -> str:
        return self._environment.get(name, "")


_: type[CiHost] = BuildkiteHost
