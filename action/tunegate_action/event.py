"""What GitHub's event means: which revisions, how much trust, where a comment goes. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

import msgspec

Strategy = Literal["merge-commit", "push", "range", "default"]


class Event(msgspec.Struct, frozen=True, kw_only=True):
    """`first` and `second` are the two revisions that a strategy needs. `zone` is the part of the
    cache this event may write; a fork may write none. `pull_request` is its number, if it is one."""

    strategy: Strategy
    first: str = ""
    second: str = ""
    zone: str | None = None
    is_fork: bool = False
    pull_request: int | None = None
    repository: str = ""


def read_event(environment: Mapping[str, str], payload: Mapping[str, Any]) -> Event:
    """From GITHUB_* variables and the content of GITHUB_EVENT_PATH."""
    repository = environment.get("GITHUB_REPOSITORY", "")
    match environment.get("GITHUB_EVENT_NAME", ""):
        case "pull_request" | "pull_request_target":
            return _pull_request(payload, repository)
        case "push":
            return _push(payload, repository)
        case "merge_group":
            group = payload.get("merge_group", {})
            return Event(
                strategy="range",
                first=str(group.get("base_sha", "")),
                second=str(group.get("head_sha", "")),
                zone=f"pr/{repository}/queue" if repository else None,
                repository=repository,
            )
        case _:
            return Event(strategy="default", repository=repository)


def _pull_request(payload: Mapping[str, Any], repository: str) -> Event:
    """The default checkout is the merge commit, whose first parent is the base: the event's own
    base may be older than that."""
    pull = payload.get("pull_request", {})
    number = int(payload.get("number") or pull.get("number") or 0)
    head_repository = (pull.get("head", {}).get("repo") or {}).get("full_name")
    return Event(
        strategy="merge-commit",
        first=str(pull.get("base", {}).get("sha", "")),
        second=str(pull.get("head", {}).get("sha", "")),
        zone=f"pr/{repository}/{number}",
        is_fork=head_repository != repository,
        pull_request=number or None,
        repository=repository,
    )


def _push(payload: Mapping[str, Any], repository: str) -> Event:
    default = (payload.get("repository") or {}).get("default_branch")
    is_default = payload.get("ref") == f"refs/heads/{default}"
    branch = str(payload.get("ref", "")).removeprefix("refs/heads/")
    return Event(
        strategy="push",
        first=str(payload.get("before", "")),
        second=str(payload.get("after", "")),
        zone="main" if is_default else _branch_zone(repository, branch),
        repository=repository,
    )


def _branch_zone(repository: str, branch: str) -> str | None:
    """Other branches may not teach the main zone; a name that is no zone teaches nothing."""
    plain = "".join(c if c.isalnum() and c.isascii() else "_" for c in branch)
    return f"pr/{repository}/branch_{plain}" if repository and plain else None
