"""The facts of this run: the repository, the change, the commit, and the page of its CI job."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping

from tunegate.artifacts.history import MAX_TEXT, RunFacts
from tunegate.ci_hosts.cache_zone import MAIN
from tunegate.ci_hosts.protocol import JobEvent
from tunegate.ci_hosts.registry import job_event, run_address
from tunegate.edges.git.repository import GitRepository

_ADDRESS = re.compile(r"https?://[^\s@<>\"'`\\]+")


def run_facts(
    repository: GitRepository, commit: str, *, at: int, variables: Mapping[str, str] = os.environ
) -> RunFacts:
    """The facts of a run that ended at `at`, in seconds since 1970, and whose head is `commit`."""
    event = job_event(variables)
    return RunFacts(
        at=at,
        repository=repository.name(),
        release=repository.release(commit),
        change=event.pull_request if event is not None else None,
        is_aside=_is_aside(event, repository, commit),
        authored=repository.authored(commit),
        run_url=_shown(run_address(variables)),
    )


def _is_aside(event: JobEvent | None, repository: GitRepository, commit: str) -> bool:
    """Returns whether the head is outside of the default branch. A CI that lets the job teach the
    main zone has said that it is."""
    if event is not None and event.zone == MAIN:
        return False
    has_request = event is not None and event.pull_request is not None
    return has_request or repository.is_beside_default(commit)


def _shown(address: str) -> str:
    """An address that anybody may see, and follow."""
    return address if len(address) <= MAX_TEXT and _ADDRESS.fullmatch(address) else ""
