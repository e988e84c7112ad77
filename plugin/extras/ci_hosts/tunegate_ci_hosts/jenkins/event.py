"""Builds of Jenkins as comparisons: commits, trust and change. Pure.

The variables are those of multibranch pipelines. Any other job only reads the cache.
"""

from __future__ import annotations

from collections.abc import Mapping

from tunegate.ci.events import (
    MAIN,
    JobVariables,
    as_asked,
    contradiction,
    of_branch,
    of_tag,
    require_judged,
    zone_of_branch,
    zone_of_pull_request,
)
from tunegate.ci.protocol import AskedRevisions, JobEvent, MergeBase, Push, RevisionChoice, Usual
from tunegate_ci_hosts.jenkins.event_table import JENKINS_EVENTS


def jenkins_event(environment: Mapping[str, str], requested: AskedRevisions) -> JobEvent:
    """Returns the event of a multibranch build. Raises ConfigError for a refused one; a job that
    names both base and head needs no event."""
    job = JobVariables(environment)
    kind = _kind(job)
    if requested.base and requested.head:
        return as_asked(job.number("CHANGE_ID"), job.commit_or_none("GIT_COMMIT") or "")
    require_judged(JENKINS_EVENTS, kind, "BRANCH_NAME")
    if kind in {"change", "fork"}:
        return _change(job, is_fork=kind == "fork")
    if kind == "tag":
        return of_tag(requested, _head(job))
    if kind == "single":
        return of_branch(requested, _head(job), Usual(default_branch=job.default_branch()), None)
    return _branch(job, requested, is_primary=kind == "primary")


def _kind(job: JobVariables) -> str:
    if job.text("CHANGE_ID") or job.text("CHANGE_TARGET"):
        return "fork" if job.text("CHANGE_FORK") else "change"
    if job.text("TAG_NAME"):
        return "tag"
    if not job.text("BRANCH_NAME"):
        return "single"
    return "primary" if _is_primary(job) else "branch"


def _is_primary(job: JobVariables) -> bool:
    default = job.default_branch()
    if default:
        return default == job.branch("BRANCH_NAME")
    return job.text("BRANCH_IS_PRIMARY") == "true"


def _change(job: JobVariables, *, is_fork: bool) -> JobEvent:
    """Returns the event of a change. A merge made by Jenkins exists nowhere else: the checked out
    one is judged."""
    target = job.branch("CHANGE_TARGET")
    if not target:
        raise contradiction("CHANGE_TARGET is not set")
    number = job.number("CHANGE_ID")
    writes = number is not None and not is_fork
    return JobEvent(
        revisions=MergeBase(target=target),
        zone=zone_of_pull_request(_project(job), number) if writes and number else None,
        pull_request=number,
    )


def _branch(job: JobVariables, requested: AskedRevisions, *, is_primary: bool) -> JobEvent:
    branch, head = job.branch("BRANCH_NAME"), _head(job)
    if not is_primary:
        zone = zone_of_branch(_project(job), branch, "")
        return of_branch(requested, head, Usual(default_branch=job.default_branch()), zone)
    before = job.commit_or_none("GIT_PREVIOUS_SUCCESSFUL_COMMIT")
    compared: RevisionChoice = Usual(default_branch=branch, is_on_it=True)
    if before and head and before != head:
        compared = Push(before=before, after=head, default_branch=branch)
    return of_branch(requested, head, compared, MAIN)


def _head(job: JobVariables) -> str:
    """Returns the checked out commit, '' if a script's checkout did not set GIT_COMMIT: then git's
    own counts."""
    return job.commit("GIT_COMMIT") if job.text("GIT_COMMIT") else ""


def _project(job: JobVariables) -> str:
    """Returns the folders and the name of the multibranch project: JOB_NAME without its last part,
    the branch."""
    project, _, _ = job.text("JOB_NAME").rpartition("/")
    return "".join(c if c.isascii() and (c.isalnum() or c in "._/-") else "_" for c in project)
