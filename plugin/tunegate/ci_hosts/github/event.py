"""What an event of GitHub means: which commits, how much trust, which pull request. Pure.

What the table of `event_table.py` does not have, or what contradicts itself, is refused: a verdict
is never about commits that the event does not mean.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any

import msgspec

from tunegate.ci_hosts.event_table import JudgedEvent, event_refusal
from tunegate.ci_hosts.github.event_table import GITHUB_EVENTS
from tunegate.ci_hosts.protocol import AskedRevisions, JobEvent
from tunegate.ci_hosts.revision_choice import MergeCommit, Push, Range, RevisionChoice, Usual
from tunegate.errors import ConfigError

_COMMIT = re.compile(r"[0-9a-f]{40}|[0-9a-f]{64}")
_GIVEN = "Or give the inputs base and head."
_Payload = Mapping[str, Any]
_Environment = Mapping[str, str]


def github_event(environment: _Environment, payload: _Payload, asked: AskedRevisions) -> JobEvent:
    """The event from GITHUB_* variables and the content of GITHUB_EVENT_PATH. Raises ConfigError
    for an event that is refused; whoever gives both base and head says what it means."""
    name = environment.get("GITHUB_EVENT_NAME", "")
    repository = environment.get("GITHUB_REPOSITORY", "")
    if asked.base and asked.head:
        return _given(payload)
    row = GITHUB_EVENTS.get(name)
    if not isinstance(row, JudgedEvent):
        raise ConfigError(_refusal(name))
    named = _named(payload, "repository", "full_name") or repository
    if not repository or named != repository:
        raise _contradiction(f"the event is of {named or 'no repository'}, not of {repository}")
    found = _READERS[name](environment, payload, asked)
    zone = None if asked.head and found.zone == "main" else found.zone
    return msgspec.structs.replace(found, zone=zone)


def _refusal(name: str) -> str:
    if not name:
        return "GITHUB_EVENT_NAME is not set: no event says what to compare. " + _GIVEN
    return event_refusal(GITHUB_EVENTS, name, f"Use pull_request. {_GIVEN}")


def _given(payload: _Payload) -> JobEvent:
    """Nothing is written to the cache: nobody has said whose commits these are."""
    number = _named(payload, "pull_request", "number")
    return JobEvent(
        revisions=Usual(),
        pull_request=number if isinstance(number, int) else None,
        tip=_text(payload, "pull_request", "head", "sha"),
    )


def _pull_request(environment: _Environment, payload: _Payload, asked: AskedRevisions) -> JobEvent:
    number = _named(payload, "pull_request", "number")
    if not isinstance(number, int) or number < 1:
        raise _contradiction("it names no pull request")
    is_closed = _text(payload, "pull_request", "state") == "closed"
    if is_closed or payload.get("action") == "closed":
        message = f"event pull_request: {number} is closed, nothing of it can be merged. Use push."
        raise ConfigError(message)
    repository = environment["GITHUB_REPOSITORY"]
    is_fork = _text(payload, "pull_request", "head", "repo", "full_name") != repository
    tip = _commit(payload, "pull_request", "head", "sha")
    return JobEvent(
        revisions=MergeCommit(
            base_tip=_commit(payload, "pull_request", "base", "sha"), head_tip=tip
        ),
        zone=None if is_fork else f"pr/{repository}/{number}",
        pull_request=number,
        tip=tip,
    )


def _merge_group(environment: _Environment, payload: _Payload, asked: AskedRevisions) -> JobEvent:
    head = _commit(payload, "merge_group", "head_sha")
    return JobEvent(
        revisions=Range(base=_commit(payload, "merge_group", "base_sha"), head=head),
        checked_out=head,
        zone=f"pr/{environment['GITHUB_REPOSITORY']}/queue",
    )


def _push(environment: _Environment, payload: _Payload, asked: AskedRevisions) -> JobEvent:
    ref, after = _text(payload, "ref"), _text(payload, "after")
    if payload.get("deleted") is True or set(after) == {"0"}:
        raise ConfigError(f"event push: {ref} was deleted, there is nothing to check.")
    if not ref.startswith("refs/heads/"):
        return _release(environment, payload, asked)
    after, default = _commit(payload, "after"), _default_branch(payload)
    compared: RevisionChoice = _usual(payload)
    if not default or ref == f"refs/heads/{default}":
        before = _commit(payload, "before")
        compared = Push(before=before, after=after, is_default=bool(default))
    return JobEvent(
        revisions=compared,
        checked_out=after,
        zone=_zone_of_branch(environment, payload, ref),
    )


def _release(environment: _Environment, payload: _Payload, asked: AskedRevisions) -> JobEvent:
    if not asked.since_release and not asked.base:
        message = (
            "a tag says nothing of what to compare with. Set the input since-release to true, or "
            "give the input base."
        )
        raise ConfigError(message)
    return JobEvent(revisions=Usual(), checked_out=_sha(environment))


def _schedule(environment: _Environment, payload: _Payload, asked: AskedRevisions) -> JobEvent:
    return JobEvent(
        revisions=Usual(default_branch=_default_branch(payload), is_on_it=True),
        checked_out=_sha(environment),
        zone="main",
    )


def _workflow_dispatch(
    environment: _Environment, payload: _Payload, asked: AskedRevisions
) -> JobEvent:
    ref = environment.get("GITHUB_REF", "")
    zone = _zone_of_branch(environment, payload, ref)
    is_on_it = ref == f"refs/heads/{_default_branch(payload)}"
    return JobEvent(
        revisions=msgspec.structs.replace(_usual(payload), is_on_it=is_on_it),
        checked_out=_sha(environment),
        zone=zone,
    )


_READERS: Mapping[str, Callable[[_Environment, _Payload, AskedRevisions], JobEvent]] = {
    "pull_request": _pull_request,
    "merge_group": _merge_group,
    "push": _push,
    "schedule": _schedule,
    "workflow_dispatch": _workflow_dispatch,
    "release": _release,
}


def _zone_of_branch(environment: _Environment, payload: _Payload, ref: str) -> str | None:
    """Other branches may not teach the main zone; a tag, or a name that is no zone, teaches
    nothing."""
    default = _default_branch(payload)
    if not ref.startswith("refs/heads/"):
        return None
    branch = ref.removeprefix("refs/heads/")
    if branch == default:
        return "main"
    plain = "".join(c if c.isalnum() and c.isascii() else "_" for c in branch)
    return f"pr/{environment['GITHUB_REPOSITORY']}/branch_{plain}" if plain else None


def _usual(payload: _Payload) -> Usual:
    """A checkout of all branches is of today. One that keeps no credentials can fetch none."""
    return Usual(default_branch=_default_branch(payload), is_here_enough=True)


def _default_branch(payload: _Payload) -> str:
    return _text(payload, "repository", "default_branch")


def _sha(environment: _Environment) -> str:
    commit = environment.get("GITHUB_SHA", "")
    if not _COMMIT.fullmatch(commit):
        raise _contradiction("GITHUB_SHA names no commit")
    return commit


def _commit(payload: _Payload, *path: str) -> str:
    found = _text(payload, *path)
    if not _COMMIT.fullmatch(found):
        raise _contradiction(f"{'.'.join(path)} is no commit")
    return found


def _text(payload: _Payload, *path: str) -> str:
    found = _named(payload, *path)
    return found if isinstance(found, str) else ""


def _named(payload: _Payload, *path: str) -> object:
    found: object = payload
    for name in path:
        found = found.get(name) if isinstance(found, Mapping) else None
    return found


def _contradiction(what: str) -> ConfigError:
    return ConfigError(f"the event cannot be used: {what}. {_GIVEN}")
