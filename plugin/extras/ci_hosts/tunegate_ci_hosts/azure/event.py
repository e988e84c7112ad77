"""Runs of Azure Pipelines as comparisons: commits, trust and pull request. Pure.

No variable has the default branch, or the commit before a push: the template passes on the first.
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
from tunegate_ci_hosts.azure.event_table import AZURE_EVENTS

_WRITING = {"IndividualCI", "BatchedCI", "Schedule"}
_TAG, _BRANCH = "refs/tags/", "refs/heads/"
_TIP = "SYSTEM_PULLREQUEST_SOURCECOMMITID"


def azure_event(environment: Mapping[str, str], requested: AskedRevisions) -> JobEvent:
    """Returns the event, from BUILD_* and SYSTEM_* variables. Raises ConfigError for a refused run;
    a job that names both base and head needs no event."""
    job = JobVariables(environment)
    reason, number = job.text("BUILD_REASON"), pull_request(job)
    if requested.base and requested.head:
        return as_asked(number, job.commit_or_none(_TIP) or "")
    require_judged(AZURE_EVENTS, reason, "BUILD_REASON")
    head, ref = job.commit("BUILD_SOURCEVERSION"), job.text("BUILD_SOURCEBRANCH")
    if reason == "PullRequest":
        return _pull_request(job, head, number)
    if ref.startswith(_TAG):
        return of_tag(requested, head)
    if not ref.startswith(_BRANCH):
        raise contradiction("BUILD_SOURCEBRANCH names no branch and no tag")
    zone = _zone(job, ref) if reason in _WRITING else None
    return of_branch(requested, head, Usual(default_branch=job.default_branch()), zone)


def pull_request(job: JobVariables) -> int | None:
    """Returns the number of a run's pull request, as people know it. For one on GitHub the
    identifier is another number."""
    names = ("SYSTEM_PULLREQUEST_PULLREQUESTNUMBER", "SYSTEM_PULLREQUEST_PULLREQUESTID")
    return job.number(names[0]) or job.number(names[1])


def _pull_request(job: JobVariables, head: str, number: int | None) -> JobEvent:
    """Returns the event; the merge commit is checked out, and must be the run's."""
    target = job.branch("SYSTEM_PULLREQUEST_TARGETBRANCH")
    if number is None or not target:
        raise contradiction("it names no pull request with a target branch")
    is_fork = job.text("SYSTEM_PULLREQUEST_ISFORK").lower() != "false"
    zone = None if is_fork else zone_of_pull_request(_project(job), number)
    found = of_pull_request(number, job.commit(_TIP), target, zone)
    stage = job.text("SYSTEM_STAGENAME").removeprefix("__default")
    name = " ".join(filter(None, (stage, job.text("AGENT_JOBNAME"))))
    return msgspec.structs.replace(found, checked_out=head, job=name)


def _zone(job: JobVariables, ref: str) -> str:
    branch = ref.removeprefix(_BRANCH)
    return zone_of_branch(_project(job), branch, job.default_branch())


def _project(job: JobVariables) -> str:
    """Returns the repository: a GUID in Azure Repos, `owner/name` in GitHub."""
    return job.text("BUILD_REPOSITORY_ID")
