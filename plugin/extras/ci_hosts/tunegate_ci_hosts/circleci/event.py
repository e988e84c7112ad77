"""Jobs of CircleCI as comparisons: commits, trust and pull request. Pure.

CircleCI names no base: an orb can pass on what its configuration knows. A project whose integration
does not say whether a branch is a fork's only reads the cache.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from tunegate.ci.events import (
    JobVariables,
    as_asked,
    of_branch,
    of_tag,
    require_judged,
    zone_of_branch,
    zone_of_pull_request,
)
from tunegate.ci.protocol import AskedRevisions, JobEvent, MergeBase, Push, RevisionChoice, Usual
from tunegate_ci_hosts.circleci.event_table import CIRCLECI_EVENTS

_PULL_REQUEST = re.compile(
    r"https?://[^\s,]+/(?:pull|pull-requests|merge_requests)/([1-9]\d{0,17})"
)
_BASE, _TARGET = "TUNEGATE_BASE_REVISION", "TUNEGATE_TARGET_BRANCH"
_OF_FORK = ("CIRCLE_PR_USERNAME", "CIRCLE_PR_REPONAME", "CIRCLE_PR_NUMBER")
"""The variables that only pull requests of forks have."""


def circleci_event(environment: Mapping[str, str], requested: AskedRevisions) -> JobEvent:
    """Returns the event, from CIRCLE_* variables. Raises ConfigError; a job that names both base
    and head needs no event."""
    job = JobVariables(environment)
    number, kind = _number(job), _kind(job)
    if requested.base and requested.head:
        return as_asked(number, job.commit_or_none("CIRCLE_SHA1") or "")
    require_judged(CIRCLECI_EVENTS, kind, "CIRCLE_BRANCH")
    head = job.commit("CIRCLE_SHA1")
    if kind == "tag":
        return of_tag(requested, head)
    if kind == "branch":
        return of_branch(requested, head, _branch_revisions(job, head), _zone(job))
    project = _project(job)
    writes = kind == "pull_request" and project and number
    return JobEvent(
        revisions=_target(job),
        checked_out=head,
        zone=zone_of_pull_request(project, number) if writes and number else None,
        pull_request=number,
        tip=head if number else "",
    )


def _kind(job: JobVariables) -> str:
    if job.text("CIRCLE_TAG"):
        return "tag"
    if any(job.text(name) for name in _OF_FORK):
        return "fork"
    if job.text("CIRCLE_PULL_REQUEST") or job.text("CIRCLE_PULL_REQUESTS"):
        return "pull_request"
    return "branch" if job.text("CIRCLE_BRANCH") else ""


def _number(job: JobVariables) -> int | None:
    """Returns the number in the pull request's address; of several, the first."""
    named = job.text("CIRCLE_PULL_REQUESTS") or job.text("CIRCLE_PULL_REQUEST")
    numbers = (int(found[1]) for found in _PULL_REQUEST.finditer(named))
    return job.number("CIRCLE_PR_NUMBER") or min(numbers, default=None)


def _target(job: JobVariables) -> RevisionChoice:
    target = job.branch(_TARGET)
    return MergeBase(target=target) if target else Usual(default_branch=job.default_branch())


def _branch_revisions(job: JobVariables, head: str) -> RevisionChoice:
    default = job.default_branch()
    before = job.commit_or_none(_BASE)
    if before and before != head and default == job.branch("CIRCLE_BRANCH"):
        return Push(before=before, after=head, default_branch=default, is_default=True)
    return Usual(default_branch=default)


def _zone(job: JobVariables) -> str | None:
    project = _project(job)
    if not project:
        return None
    return zone_of_branch(project, job.branch("CIRCLE_BRANCH"), job.default_branch())


def _project(job: JobVariables) -> str:
    """Returns the organization and the project, '' if the integration does not say them: then it
    does not say either whether a branch is a fork's."""
    parts = (job.text("CIRCLE_PROJECT_USERNAME"), job.text("CIRCLE_PROJECT_REPONAME"))
    return "/".join(parts) if all(parts) else ""
