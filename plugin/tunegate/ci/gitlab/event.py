"""Pipelines of GitLab as comparisons: commits, trust and merge request. Pure.

No variable says whether a merge request is closed: GitLab starts no pipeline for a closed one.
"""

from collections.abc import Mapping

import msgspec

from tunegate.ci import events
from tunegate.ci.protocol import AskedRevisions, JobEvent, Push, RevisionChoice, Usual

_SOURCE, _NUMBER, _PROJECT_ID = "CI_PIPELINE_SOURCE", "CI_MERGE_REQUEST_IID", "CI_PROJECT_ID"
_OF_MERGE_REQUEST = {"merge_request_event", "parent_pipeline"}


def gitlab_event(environment: Mapping[str, str], requested: AskedRevisions) -> JobEvent:
    """Returns the event, from CI_* variables. Raises ConfigError for a refused pipeline; a job that
    names both base and head needs no event."""
    job = events.JobVariables(environment)
    return msgspec.structs.replace(_event(job, requested), job=job.text("CI_JOB_NAME"))


def _event(job: events.JobVariables, requested: AskedRevisions) -> JobEvent:
    source, number = job.text(_SOURCE), job.number(_NUMBER)
    if requested.base and requested.head:
        return events.as_asked(number, job.commit_or_none("CI_COMMIT_SHA") or "")
    events.require_judged(GITLAB_EVENTS, source, _SOURCE)
    head = job.commit("CI_COMMIT_SHA")
    if source in _OF_MERGE_REQUEST and number is not None:
        return _merge_request(job, head, number)
    if source == "merge_request_event":
        raise events.contradiction(f"{_NUMBER} is not a number")
    if branch := job.text("CI_COMMIT_BRANCH"):
        zone = events.zone_of_branch(_project(job), branch, _default_branch(job))
        return events.of_branch(requested, head, _revisions_of_branch(job, head, source), zone)
    if not job.text("CI_COMMIT_TAG"):
        raise events.contradiction("it names no branch, no tag and no merge request")
    return events.of_tag(requested, head)


def _merge_request(job: events.JobVariables, head: str, number: int) -> JobEvent:
    zone = None if _is_fork(job) else events.zone_of_pull_request(_project(job), number)
    event = events.of_pull_request(number, head, _target(job), zone)
    target = job.branch("CI_MERGE_REQUEST_TARGET_BRANCH_NAME")
    return msgspec.structs.replace(event, checked_out=head, target=target)


def _target(job: events.JobVariables) -> str:
    """Returns the commit or branch that the merge request is compared with: the one that a merged
    result was merged onto (in a merge train the merge request before), or else the target branch,
    of which a fork's project has its own."""
    merged_onto = "CI_MERGE_REQUEST_TARGET_BRANCH_SHA"
    if job.text(merged_onto):
        return job.commit(merged_onto)
    if _is_elsewhere(job):
        return job.commit("CI_MERGE_REQUEST_DIFF_BASE_SHA")
    branch = job.branch("CI_MERGE_REQUEST_TARGET_BRANCH_NAME")
    if not branch:
        raise events.contradiction("it names no target branch")
    return branch


def _revisions_of_branch(job: events.JobVariables, head: str, source: str) -> RevisionChoice:
    branch, default = job.text("CI_COMMIT_BRANCH"), _default_branch(job)
    if source != "push" or default not in {"", branch}:
        return Usual(default_branch=default, is_on_it=branch == default)
    before = job.commit("CI_COMMIT_BEFORE_SHA")
    return Push(before=before, after=head, default_branch=default, is_default=bool(default))


def _is_fork(job: events.JobVariables) -> bool:
    source = job.text("CI_MERGE_REQUEST_SOURCE_PROJECT_ID")
    return not source or source != job.text(_PROJECT_ID) or _is_elsewhere(job)


def _is_elsewhere(job: events.JobVariables) -> bool:
    """Returns whether the pipeline runs in another project than the merge request's."""
    of_request = job.text("CI_MERGE_REQUEST_PROJECT_ID")
    return not of_request or of_request != job.text(_PROJECT_ID)


def _default_branch(job: events.JobVariables) -> str:
    return job.text("CI_DEFAULT_BRANCH")


def _project(job: events.JobVariables) -> str:
    """Returns the groups and the name of the project."""
    return job.text("CI_PROJECT_PATH")


# Every source of a GitLab pipeline: what it compares and may write, or why it is refused and what
# to use instead. docs/how-to/gitlab.md shows this table.

_MERGE_REQUEST = "Use merge request pipelines."
_GIVEN = "Use merge request or branch pipelines, or name --base and --head."
_BRANCH = events.JudgedEvent(
    base="the merge base with the default branch; on it, its parent",
    head="the commit that it was started on",
    writes="as a push to that branch; from a tag nothing",
)

GITLAB_EVENTS: events.EventTable = {
    "merge_request_event": events.JudgedEvent(
        base="the merge base with the target branch; of a merged result or a merge train, what it "
        "was merged onto",
        head="the commit of the pipeline",
        writes="`pr/<project>/<number>`; of a fork nothing",
    ),
    "push": events.JudgedEvent(
        base="of the default branch the commit before; of another branch its merge base with the "
        "default branch",
        head="the commit after",
        writes="`main` from the default branch, else `pr/<project>/branch_<name>`",
    ),
    "schedule": _BRANCH,
    "web": _BRANCH,
    "api": _BRANCH,
    "trigger": _BRANCH,
    "pipeline": _BRANCH,
    "parent_pipeline": events.JudgedEvent(
        base="as the pipeline that started it",
        head="the same commit",
        writes="as the pipeline that started it",
    ),
    "external_pull_request_event": events.RefusedEvent(
        "its pull request is on another host, which knows its author", "Run tunegate there."
    ),
    "external": events.RefusedEvent("no job of it runs here", _GIVEN),
    "chat": events.RefusedEvent("its meaning is up to the writer", _GIVEN),
    "webide": events.RefusedEvent("it is a terminal whose changes are not merged", _MERGE_REQUEST),
    "ondemand_dast_scan": events.RefusedEvent("it names no two commits", _GIVEN),
    "ondemand_dast_validation": events.RefusedEvent("it names no two commits", _GIVEN),
    "security_orchestration_policy": events.RefusedEvent("it names no two commits", _GIVEN),
}
