"""A build of Jenkins."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path

from tunegate.ci.host_files import log_annotations, report_inside, write_outputs
from tunegate.ci.protocol import (
    AskedRevisions,
    CiHost,
    HostRefusedError,
    JobEvent,
    JobReport,
    Links,
)
from tunegate_ci_hosts.jenkins.event import jenkins_event


class JenkinsHost:
    """A build of Jenkins, by the variables that the controller gives it."""

    def __init__(self, environment: Mapping[str, str]) -> None:
        self._environment = environment

    @staticmethod
    def is_here(environment: Mapping[str, str]) -> bool:
        """Returns whether this is a Jenkins build: each has both of these variables."""
        return bool(environment.get("JENKINS_URL") and environment.get("BUILD_TAG"))

    def event(self, asked: AskedRevisions) -> JobEvent:
        """Returns the build's event. Raises ConfigError."""
        return jenkins_event(self._environment, asked)

    def links(self, out: Path) -> Links:
        """Returns the links; the report is among the artifacts if the directory is in the
        workspace."""
        build = self._value("BUILD_URL").rstrip("/")
        report = report_inside(out, self._value("WORKSPACE"))
        return Links(run=build, report=f"{build}/artifact/{report}" if build and report else "")

    def literal_output(self) -> AbstractContextManager[None]:
        """Changes nothing: nobody reads commands from a log."""
        return nullcontext()

    def tell(self, report: JobReport) -> None:
        """Reports annotations in the log, and outputs in a file for later steps."""
        log_annotations(report.annotations)
        if report.directory is not None:
            write_outputs(report.directory, report.outputs)

    def comment(
        self, event: JobEvent, name: str, markdown: str, *, updates_only: bool = False
    ) -> None:
        """Does nothing: Jenkins cannot write on a change; the repository's host can."""
        raise HostRefusedError("Jenkins has no comments: archive the report")

    def _value(self, name: str) -> str:
        return self._environment.get(name, "")


_: type[CiHost] = JenkinsHost
