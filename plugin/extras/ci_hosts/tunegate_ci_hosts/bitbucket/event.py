"""Pipelines of Bitbucket as comparisons: commits, trust and pull request. Pure.

In a pull request's pipeline, the destination has been merged into what is checked out.
"""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from tunegate.ci.events import (
    JobVariables,
    as_asked,
    contradiction,
    of_branch,
    of_pull_request,
    of_tag,
    require_judged,
    zone_of_branch,
    zone_of_pull_request,
)
from tunegate.ci.protocol import AskedRevisions, JobEvent, Usual
from tunegate_ci_hosts.bitbucket.event_table import BITBUCKET_EVENTS


def bitbucket_event(environment: Mapping[str, str], requested: AskedRevisions) -> JobEvent:
    """Returns the event, from BITBUCKET_* variables. Raises ConfigError for a refused pipeline; a
    job that names both base and head needs no event."""
    job = JobVariables(environment)
    number = job.number("BITBUCKET_PR_ID")
    if requested.base and requested.head:
        return as_asked(number, job.commit_or_none("BITBUCKET_COMMIT") or "")
    kind = _kind(job)
    require_judged(BITBUCKET_EVENTS, kind, "BITBUCKET_COMMIT")
    head = job.commit("BITBUCKET_COMMIT")
    if kind == "pull-requests":
        return _pull_request(job, head)
    if kind == "tags":
        return of_tag(requested, head)
    zone = _zone(job) if kind == "branches" else None
    return of_branch(requested, head, Usual(default_branch=job.default_branch()), zone)


def _kind(job: JobVariables) -> str:
    named = {
        "pull-requests": "BITBUCKET_PR_ID",
        "bookmarks": "BITBUCKET_BOOKMARK",
        "tags": "BITBUCKET_TAG",
        "branches": "BITBUCKET_BRANCH",
        "custom": "BITBUCKET_COMMIT",
    }
    return next((kind for kind, variable in named.items() if job.text(variable)), "")


def _pull_request(job: JobVariables, head: str) -> JobEvent:
    """Returns the event. The destination's commit may be abbreviated, and no remote serves that:
    then its branch is used."""
    number = job.required_number("BITBUCKET_PR_ID")
    commit = job.commit_or_none("BITBUCKET_PR_DESTINATION_COMMIT")
    target = commit or job.branch("BITBUCKET_PR_DESTINATION_BRANCH")
    if not target:
        raise contradiction("BITBUCKET_PR_DESTINATION_BRANCH is not set")
    zone = None if _is_fork(job) else zone_of_pull_request(_project(job), number)
    found = of_pull_request(number, head, target, zone)
    step = job.text("BITBUCKET_PARALLEL_STEP")
    return msgspec.structs.replace(
        found,
        target=job.branch("BITBUCKET_PR_DESTINATION_BRANCH"),
        job=f"parallel step {step}" if step else "",
    )


def _is_fork(job: JobVariables) -> bool:
    """Returns whether the clone has another origin: Bitbucket starts no pipeline here for a fork's
    pull request, but if it did, that would tell."""
    origin = job.text("BITBUCKET_GIT_HTTP_ORIGIN").removesuffix("/").removesuffix(".git")
    return not origin.lower().endswith(f"/{_project(job)}".lower())


def _zone(job: JobVariables) -> str:
    return zone_of_branch(_project(job), job.branch("BITBUCKET_BRANCH"), job.default_branch())


def _project(job: JobVariables) -> str:
    return job.text("BITBUCKET_REPO_FULL_NAME")
