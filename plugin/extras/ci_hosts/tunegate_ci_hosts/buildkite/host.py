"""Buildkite, in a job of it."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path

from tunegate.ci.host_files import log_annotations
from tunegate.ci.protocol import AgentCommand, AskedRevisions, CiHost, JobEvent, JobReport, Links
from tunegate_ci_hosts.buildkite.annotation import annotation_of
from tunegate_ci_hosts.buildkite.event import buildkite_event


class BuildkiteHost:
    """A job of Buildkite, by the variables that an agent gives to it."""

    def __init__(self, environment: Mapping[str, str]) -> None:
        self._environment = environment

    @staticmethod
    def is_here(environment: Mapping[str, str]) -> bool:
        """Every job of Buildkite's has this variable."""
        return environment.get("BUILDKITE") == "true"

    def event(self, asked: AskedRevisions) -> JobEvent:
        """Raises ConfigError."""
        return buildkite_event(self._environment, asked)

    def links(self, out: Path) -> Links:
        """Artifacts have no address that can be known before they are uploaded."""
        build, job = self._value("BUILDKITE_BUILD_URL"), self._value("BUILDKITE_JOB_ID")
        return Links(run=f"{build}#{job}" if build and job else build)

    def literal_output(self) -> AbstractContextManager[None]:
        """A log has sections, and no instructions that reach outside of it."""
        return nullcontext()

    def tell(self, report: JobReport) -> AgentCommand | None:
        """Tells annotations in the log, and the report as an annotation of the build."""
        log_annotations(report.annotations)
        if not report.summary or not self._value("BUILDKITE_JOB_ID"):
            return None
        verdict = report.outputs.get("verdict", "")
        return annotation_of(self._environment, verdict, report.summary, self._artifact(report))

    def comment(
        self, event: JobEvent, name: str, markdown: str, *, updates_only: bool = False
    ) -> None:
        """Buildkite has no comments on pull requests: the report is an annotation already."""

    def _artifact(self, report: JobReport) -> str:
        """The path of the HTML report, where the job uploads files."""
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
