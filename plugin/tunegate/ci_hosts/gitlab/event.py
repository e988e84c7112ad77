"""What a pipeline of GitLab is about: which commits, how much trust, which merge request. Pure.

A source that the table of `event_table.py` does not have, or variables that contradict each other,
are refused: a verdict is never about commits that the pipeline does not mean.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping

from tunegate.ci_hosts.event_table import JudgedEvent, event_refusal
from tunegate.ci_hosts.gitlab.event_table import GITLAB_EVENTS
from tunegate.ci_hosts.protocol import AskedRevisions, JobEvent
from tunegate.ci_hosts.revision_choice import MergeBase, Push, RevisionChoice, Usual
from tunegate.errors import ConfigError

_COMMIT = re.compile(r"[0-9a-f]{40}|[0-9a-f]{64}")
_NUMBER = re.compile(r"[1-9][0-9]{0,18}")
_PROJECT = re.compile(r"[A-Za-z0-9_][\w.-]*(/[A-Za-z0-9_][\w.-]*)+", re.ASCII)
_MAX_ZONE = 120
_OF_MERGE_REQUEST = {"merge_request_event", "parent_pipeline"}
_GIVEN = "Or name --base and --head, the two commits to compare."
_Environment = Mapping[str, str]


def gitlab_event(environment: _Environment, asked: AskedRevisions) -> JobEvent:
    """The event from CI_* variables. Raises ConfigError for a pipeline that is refused; whoever
    names both base and head says what it means."""
    source = environment.get("CI_PIPELINE_SOURCE", "")
    number = merge_request(environment)
    if asked.base and asked.head:
        tip = environment.get("CI_COMMIT_SHA", "")
        return JobEvent(revisions=Usual(), pull_request=number, tip=tip if number else "")
    if not isinstance(GITLAB_EVENTS.get(source), JudgedEvent):
        raise ConfigError(_refusal(source))
    head = _commit(environment, "CI_COMMIT_SHA")
    if source in _OF_MERGE_REQUEST and number is not None:
        return _merge_request(environment, head, number)
    if source == "merge_request_event":
        raise _contradiction("CI_MERGE_REQUEST_IID is no number")
    return _branch(environment, head, asked, is_push=source == "push")


def merge_request(environment: _Environment) -> int | None:
    """The number of the merge request that a pipeline is for, if it is for one."""
    number = environment.get("CI_MERGE_REQUEST_IID", "")
    return int(number) if _NUMBER.fullmatch(number) else None


def _refusal(source: str) -> str:
    if not source:
        return "CI_PIPELINE_SOURCE is not set: no event says what to compare. " + _GIVEN
    return event_refusal(GITLAB_EVENTS, source, f"Use merge request pipelines. {_GIVEN}")


def _merge_request(environment: _Environment, head: str, number: int) -> JobEvent:
    return JobEvent(
        revisions=MergeBase(target=_target(environment)),
        checked_out=head,
        zone=None if _is_fork(environment) else _zone(environment, str(number)),
        pull_request=number,
        tip=head,
    )


def _target(environment: _Environment) -> str:
    """What a merged result was merged onto; in a merge train that is the merge request before.
    Without a merged result the target branch, of which the project of a fork has its own."""
    merged_onto = environment.get("CI_MERGE_REQUEST_TARGET_BRANCH_SHA", "")
    if merged_onto:
        return _commit(environment, "CI_MERGE_REQUEST_TARGET_BRANCH_SHA")
    if _is_elsewhere(environment):
        return _commit(environment, "CI_MERGE_REQUEST_DIFF_BASE_SHA")
    branch = environment.get("CI_MERGE_REQUEST_TARGET_BRANCH_NAME", "")
    if not branch:
        raise _contradiction("it names no target branch")
    return branch


def _branch(
    environment: _Environment, head: str, asked: AskedRevisions, *, is_push: bool
) -> JobEvent:
    branch = environment.get("CI_COMMIT_BRANCH", "")
    if not branch:
        return _release(environment, head, asked)
    default = environment.get("CI_DEFAULT_BRANCH", "")
    zone = _zone_of_branch(environment, branch)
    if asked.head and zone == "main":
        zone = None
    compared: RevisionChoice = Usual(default_branch=default, is_on_it=branch == default)
    if is_push and default in {"", branch}:
        before = _commit(environment, "CI_COMMIT_BEFORE_SHA")
        compared = Push(before=before, after=head, default_branch=default, is_default=bool(default))
    return JobEvent(revisions=compared, checked_out=head, zone=zone)


def _release(environment: _Environment, head: str, asked: AskedRevisions) -> JobEvent:
    if not environment.get("CI_COMMIT_TAG"):
        raise _contradiction("it names no branch, no tag and no merge request")
    if not asked.since_release and not asked.base:
        message = "a tag says nothing of what to compare with. Name --since-release or --base."
        raise ConfigError(message)
    return JobEvent(revisions=Usual(), checked_out=head)


def _is_fork(environment: _Environment) -> bool:
    source = environment.get("CI_MERGE_REQUEST_SOURCE_PROJECT_ID", "")
    return not source or source != environment.get("CI_PROJECT_ID") or _is_elsewhere(environment)


def _is_elsewhere(environment: _Environment) -> bool:
    """Whether the pipeline runs in another project than that of the merge request."""
    of_request = environment.get("CI_MERGE_REQUEST_PROJECT_ID", "")
    return not of_request or of_request != environment.get("CI_PROJECT_ID")


def _zone_of_branch(environment: _Environment, branch: str) -> str | None:
    """Other branches than the default one may not teach the main zone."""
    if branch == environment.get("CI_DEFAULT_BRANCH"):
        return "main"
    plain = "".join(c if c.isalnum() and c.isascii() else "_" for c in branch)
    return _zone(environment, f"branch_{plain}")


def _zone(environment: _Environment, part: str) -> str:
    """Groups have groups, and names can be long; a zone cannot."""
    project = environment.get("CI_PROJECT_PATH", "")
    if not _PROJECT.fullmatch(project):
        raise _contradiction("CI_PROJECT_PATH names no project")
    zone = f"pr/{project}/{part}"
    if len(zone) <= _MAX_ZONE:
        return zone
    return f"pr/long/{hashlib.sha256(zone.encode()).hexdigest()[:32]}"


def _commit(environment: _Environment, name: str) -> str:
    found = environment.get(name, "")
    if not _COMMIT.fullmatch(found):
        raise _contradiction(f"{name} is no commit")
    return found


def _contradiction(what: str) -> ConfigError:
    return ConfigError(f"the pipeline cannot be used: {what}. {_GIVEN}")
