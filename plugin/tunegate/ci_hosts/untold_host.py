"""A CI that is told nothing on standard output, as a program reads it."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path

from tunegate.ci_hosts.log_line import log_annotations
from tunegate.ci_hosts.protocol import (
    AskedRevisions,
    CiHost,
    JobEvent,
    JobReport,
    Links,
)


class UntoldHost:
    """Another host without its instructions to the CI: annotations are lines on standard error."""

    def __init__(self, host: CiHost) -> None:
        self._host = host

    @staticmethod
    def is_here(environment: Mapping[str, str]) -> bool:
        """It is put around a host that is."""
        return False

    def event(self, asked: AskedRevisions) -> JobEvent:
        """Says what the other host says."""
        return self._host.event(asked)

    def links(self, out: Path) -> Links:
        """Says what the other host says."""
        return self._host.links(out)

    def literal_output(self) -> AbstractContextManager[None]:
        """Nothing is printed beside what the program reads."""
        return nullcontext()

    def tell(self, report: JobReport) -> None:
        """Tells annotations in the log."""
        log_annotations(report.annotations)

    def comment(
        self, event: JobEvent, name: str, markdown: str, *, updates_only: bool = False
    ) -> None:
        """Says what the other host says."""
        self._host.comment(event, name, markdown, updates_only=updates_only)
