"""Builds of Buildkite as comparisons: commits, trust and pull request. Pure.

A build started by somebody else's pipeline may claim anything: it only reads the cache.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

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
    zone_of_queue,
)
from tunegate.ci.protocol import AskedRevisions, JobEvent, Range, Usual
from tunegate_ci_hosts.buildkite.event_table import BUILDKITE_EVENTS

_NO_PULL_REQUEST = {"", "false"}
_WRITING = {"webhook", "schedule"}
_TRIGGERED = "trigger_job"
_SYMBOLIC = "HEAD"
"""The commit of a build that was started without one: the branch's tip at checkout."""
_REPOSITORY = re.compile(
    r"(?:\w+://)?(?:[^@/]*@)?(?P<host>[^/:]+)(?::\d+)?[:/]+(?P<path>.+?)(?:\.git)?/*"
)


def buildkite_event(environment: Mapping[str, str], requested: AskedRevisions) -> JobEvent:
    """Returns the event, from BUILDKITE_* variables. Raises ConfigError for a refused build; a job
    that names both base and head needs no event."""
    job = JobVariables(environment)
    kind = _kind(job)
    number = job.number("BUILDKITE_PULL_REQUEST")
    if requested.base and requested.head:
        return as_asked(number, job.commit_or_none("BUILDKITE_COMMIT") or "")
    require_judged(BUILDKITE_EVENTS, kind, "BUILDKITE_SOURCE")
    if kind == "pull_request":
        return _pull_request(job)
    if kind == "merge_queue":
        return _merge_queue(job)
    if kind == "tag":
        return of_tag(requested, _head(job))
    return _branch(job, requested, kind)


def _kind(job: JobVariables) -> str:
    if job.text("BUILDKITE_PULL_REQUEST") not in _NO_PULL_REQUEST:
        return "pull_request"
    if job.text("BUILDKITE_MERGE_QUEUE_BASE_COMMIT"):
        return "merge_queue"
    return "tag" if job.text("BUILDKITE_TAG") else job.text("BUILDKITE_SOURCE")


def _pull_request(job: JobVariables) -> JobEvent:
    number = job.required_number("BUILDKITE_PULL_REQUEST")
    target = job.branch("BUILDKITE_PULL_REQUEST_BASE_BRANCH")
    if not target:
        raise contradiction("BUILDKITE_PULL_REQUEST_BASE_BRANCH is not set")
    zone = None if _is_untrusted(job) else zone_of_pull_request(_project(job), number)
    return of_pull_request(number, job.commit("BUILDKITE_COMMIT"), target, zone)


def _merge_queue(job: JobVariables) -> JobEvent:
    """Returns the event. The commit that the queue merges onto may belong to another pull request
    in it."""
    head = job.commit("BUILDKITE_COMMIT")
    base = job.commit("BUILDKITE_MERGE_QUEUE_BASE_COMMIT")
    zone = None if _is_triggered(job) else zone_of_queue(_project(job))
    return JobEvent(revisions=Range(base=base, head=head), checked_out=head, zone=zone)


def _branch(job: JobVariables, requested: AskedRevisions, kind: str) -> JobEvent:
    branch, default = (
        job.branch("BUILDKITE_BRANCH"),
        job.branch("BUILDKITE_PIPELINE_DEFAULT_BRANCH"),
    )
    if not branch:
        raise contradiction("BUILDKITE_BRANCH is not set")
    zone = zone_of_branch(_project(job), branch, default) if kind in _WRITING else None
    return of_branch(requested, _head(job), Usual(default_branch=default), zone)


def _head(job: JobVariables) -> str:
    symbolic = job.text("BUILDKITE_COMMIT") == _SYMBOLIC
    return "" if symbolic else job.commit("BUILDKITE_COMMIT")


def _is_untrusted(job: JobVariables) -> bool:
    """Returns whether the pull request is a fork's, or only somebody else's pipeline names it."""
    ours = _repository(job.text("BUILDKITE_REPO"))
    return _is_triggered(job) or not ours or ours != _repository(_source(job))


def _is_triggered(job: JobVariables) -> bool:
    return job.text("BUILDKITE_SOURCE") == _TRIGGERED


def _source(job: JobVariables) -> str:
    return job.text("BUILDKITE_PULL_REQUEST_REPO")


def _repository(address: str) -> str:
    """Returns the repository of an address over SSH, HTTPS or git, so that they can be compared."""
    found = _REPOSITORY.fullmatch(address)
    return f"{found['host']}/{found['path'].strip('/')}".lower() if found else ""


def _project(job: JobVariables) -> str:
    slugs = (job.text("BUILDKITE_ORGANIZATION_SLUG"), job.text("BUILDKITE_PIPELINE_SLUG"))
    return "/".join(slugs)
