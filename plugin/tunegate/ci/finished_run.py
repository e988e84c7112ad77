"""A finished run of a pull request from a fork, reported by a run with more rights.

The run is the fork's own: its files are hostile. What is said here comes from the CI alone.
"""

from __future__ import annotations

from typing import Protocol

import msgspec

from tunegate.ci.protocol import CiHost, HostRefusedError, Links


class FinishedRun(msgspec.Struct, frozen=True, kw_only=True):
    """`pull_request` has `tip` as its head now, `source` is the fork as `owner/name`, and `links`
    are the pages of the run."""

    pull_request: int
    tip: str
    source: str
    links: Links = Links()


class FinishedRunHost(CiHost, Protocol):
    """A CI that starts a job when another run has ended."""

    def finished_run(self) -> FinishedRun:
        """Raises ConfigError for an event that is about no such run, NothingToReportError where
        nobody waits for a report, and HostRefusedError where the CI cannot be asked."""
        ...


class NothingToReportError(HostRefusedError):
    """The run is not of a fork, or its pull request is closed or has moved on."""
