"""A host that prints nothing on standard output, which a program reads."""

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
        """Returns False: it wraps another host."""
        return False

    def event(self, asked: AskedRevisions) -> JobEvent:
        """Returns the other host's event."""
        return self._host.event(asked)

    def links(self, out: Path) -> Links:
        """Returns the other host's links."""
        return self._host.links(out)

    def literal_output(self) -> AbstractContextManager[None]:
        """Changes nothing: only the program's output is printed."""
        return nullcontext()

    def tell(self, report: JobReport) -> None:
        """Tells annotations in the log."""
        log_annotations(report.annotations)

    def comment(
        self, event: JobEvent, name: str, markdown: str, *, updates_only: bool = False
    ) -> None:
        """Comments as the other host does."""
        self._host.comment(event, name, markdown, updates_only=updates_only)
