"""Events of GitHub as comparisons: commits, trust and pull request. Pure.

It is a document, not variables: what contradicts itself in there is refused, and so is a pull
request that is closed, which other CIs start nothing for.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any

import msgspec

from tunegate.ci_hosts.cache_zone import MAIN, zone_of_branch, zone_of_pull_request, zone_of_queue
from tunegate.ci_hosts.github.event_table import GITHUB_EVENTS
from tunegate.ci_hosts.job_events import as_asked, of_branch, of_tag, require_judged
from tunegate.ci_hosts.protocol import AskedRevisions, JobEvent
from tunegate.ci_hosts.revision_choice import MergeCommit, Push, Range, RevisionChoice, Usual
from tunegate.errors import ConfigError

_COMMIT = re.compile(r"[0-9a-f]{40}|[0-9a-f]{64}")
_GIVEN = "Or give the inputs base and head."
_OF_TAG = "Set the input since-release to true, or give the input base."
_TAG, _BRANCH = "refs/tags/", "refs/heads/"
_Payload = Mapping[str, Any]
_Environment = Mapping[str, str]


def github_event(environment: _Environment, payload: _Payload, asked: AskedRevisions) -> JobEvent:
    """The event from GITHUB_* variables and the content of GITHUB_EVENT_PATH. Raises ConfigError
    for an event that is refused; whoever gives both base and head says what it means."""
    name = environment.get("GITHUB_EVENT_NAME", "")
    if asked.base and asked.head:
        tip = _text(payload, "pull_request", "head", "sha")
        return as_asked(_number(payload), tip if _COMMIT.fullmatch(tip) else "")
    require_judged(GITHUB_EVENTS, name, "GITHUB_EVENT_NAME", f"Use pull_request. {_GIVEN}")
    repository = _project(environment)
    named = _named(payload, "repository", "full_name") or repository
    if not repository or named != repository:
        raise _contradiction(f"the event is of {named or 'no repository'}, not of {repository}")
    return _READERS[name](environment, payload, asked)


def _pull_request(environment: _Environment, payload: _Payload, asked: AskedRevisions) -> JobEvent:
    number = _number(payload)
    if number is None:
        raise _contradiction("it names no pull request")
    is_closed = _text(payload, "pull_request", "state") == "closed"
    if is_closed or payload.get("action") == "closed":
        message = f"event pull_request: {number} is closed, nothing of it can be merged. Use push."
        raise ConfigError(message)
    project = _project(environment)
    is_fork = _text(payload, "pull_request", "head", "repo", "full_name") != project
    tip = _commit(payload, "pull_request", "head", "sha")
    return JobEvent(
        revisions=MergeCommit(
            base_tip=_commit(payload, "pull_request", "base", "sha"), head_tip=tip
        ),
        zone=None if is_fork else zone_of_pull_request(project, number),
        pull_request=number,
        tip=tip,
    )


def _merge_group(environment: _Environment, payload: _Payload, asked: AskedRevisions) -> JobEvent:
    head = _commit(payload, "merge_group", "head_sha")
    return JobEvent(
        revisions=Range(base=_commit(payload, "merge_group", "base_sha"), head=head),
        checked_out=head,
        zone=zone_of_queue(_project(environment)),
    )


def _push(environment: _Environment, payload: _Payload, asked: AskedRevisions) -> JobEvent:
    ref, after = _text(payload, "ref"), _text(payload, "after")
    if payload.get("deleted") is True or set(after) == {"0"}:
        raise ConfigError(f"event push: {ref} was deleted, there is nothing to check.")
    if ref.startswith(_TAG):
        return _release(environment, payload, asked)
    if not ref.startswith(_BRANCH):
        raise _contradiction("ref names no branch and no tag")
    after, default = _commit(payload, "after"), _default_branch(payload)
    compared: RevisionChoice = _usual(payload)
    if not default or ref == f"{_BRANCH}{default}":
        before = _commit(payload, "before")
        compared = Push(before=before, after=after, is_default=bool(default))
    return of_branch(asked, after, compared, _zone_of_ref(environment, payload, ref))


def _release(environment: _Environment, payload: _Payload, asked: AskedRevisions) -> JobEvent:
    return of_tag(asked, _sha(environment), _OF_TAG)


def _schedule(environment: _Environment, payload: _Payload, asked: AskedRevisions) -> JobEvent:
    compared = Usual(default_branch=_default_branch(payload), is_on_it=True)
    return of_branch(asked, _sha(environment), compared, MAIN)


def _workflow_dispatch(
    environment: _Environment, payload: _Payload, asked: AskedRevisions
) -> JobEvent:
    ref = environment.get("GITHUB_REF", "")
    is_on_it = ref == f"{_BRANCH}{_default_branch(payload)}"
    compared = msgspec.structs.replace(_usual(payload), is_on_it=is_on_it)
    return of_branch(asked, _sha(environment), compared, _zone_of_ref(environment, payload, ref))


_READERS: Mapping[str, Callable[[_Environment, _Payload, AskedRevisions], JobEvent]] = {
    "pull_request": _pull_request,
    "merge_group": _merge_group,
    "push": _push,
    "schedule": _schedule,
    "workflow_dispatch": _workflow_dispatch,
    "release": _release,
}


def _zone_of_ref(environment: _Environment, payload: _Payload, ref: str) -> str | None:
    """A tag teaches nothing, nor does a branch without a name."""
    branch = ref.removeprefix(_BRANCH)
    if not ref.startswith(_BRANCH) or not branch:
        return None
    return zone_of_branch(_project(environment), branch, _default_branch(payload))


def _usual(payload: _Payload) -> Usual:
    """A checkout of all branches is of today, which it is not where a CI uses one again. One that
    keeps no credentials can fetch none."""
    return Usual(default_branch=_default_branch(payload), is_here_enough=True)


def _default_branch(payload: _Payload) -> str:
    return _text(payload, "repository", "default_branch")


def _project(environment: _Environment) -> str:
    return environment.get("GITHUB_REPOSITORY", "")


def _number(payload: _Payload) -> int | None:
    number = _named(payload, "pull_request", "number")
    return number if type(number) is int and number > 0 else None


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
