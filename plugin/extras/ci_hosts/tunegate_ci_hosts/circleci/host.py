"""A job of CircleCI."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path

from tunegate.ci.host_files import log_annotations, write_outputs
from tunegate.ci.protocol import (
    AskedRevisions,
    CiHost,
    HostRefusedError,
    JobEvent,
    JobReport,
    Links,
)
from tunegate_ci_hosts.circleci.event import circleci_event


class CircleCiHost:
    """A job of CircleCI, by the variables that the runner gives it."""

    def __init__(self, environment: Mapping[str, str]) -> None:
        self._environment = environment

    @staticmethod
    def is_here(environment: Mapping[str, str]) -> bool:
        """Returns whether this is a CircleCI job: each has this variable."""
        return environment.get("CIRCLECI") == "true"

    def event(self, asked: AskedRevisions) -> JobEvent:
        """Returns the job's event. Raises ConfigError."""
        return circleci_event(self._environment, asked)

    def links(self, out: Path) -> Links:
        """Returns the page of the job, which has the artifacts that a later step stores."""
        return Links(run=self._value("CIRCLE_BUILD_URL"))

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
        """Does nothing: CircleCI cannot write on a pull request."""
        raise HostRefusedError("CircleCI has no comments: store the report as an artifact")

    def _value(self, name: str) -> str:
        return self._environment.get(name, "")


_: type[CiHost] = CircleCiHost
