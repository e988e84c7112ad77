"""Every source of a pipeline of GitLab: what it compares and may write, or why it is refused and
what to use instead. docs/how-to/gitlab.md shows this table."""

from __future__ import annotations

from tunegate.ci_hosts.event_table import EventTable, JudgedEvent, RefusedEvent

_MERGE_REQUEST = "Use merge request pipelines."
_GIVEN = "Use merge request or branch pipelines, or name --base and --head."
_BRANCH = JudgedEvent(
    base="the merge base with the default branch; on it, its parent",
    head="the commit that it was started on",
    writes="as a push to that branch; from a tag nothing",
)

GITLAB_EVENTS: EventTable = {
    "merge_request_event": JudgedEvent(
        base="the merge base with the target branch; of a merged result or a merge train, what it "
        "was merged onto",
        head="the commit of the pipeline",
        writes="`pr/<project>/<number>`; of a fork nothing",
    ),
    "push": JudgedEvent(
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
    "parent_pipeline": JudgedEvent(
        base="as the pipeline that started it",
        head="the same commit",
        writes="as the pipeline that started it",
    ),
    "external_pull_request_event": RefusedEvent(
        "its pull request is of another host, which knows whose it is", "Run tunegate there."
    ),
    "external": RefusedEvent("no job of it runs here", _GIVEN),
    "chat": RefusedEvent("whoever writes in the chat says what it means", _GIVEN),
    "webide": RefusedEvent("it is a terminal, and nothing is merged after it", _MERGE_REQUEST),
    "ondemand_dast_scan": RefusedEvent("it names no two commits", _GIVEN),
    "ondemand_dast_validation": RefusedEvent("it names no two commits", _GIVEN),
    "security_orchestration_policy": RefusedEvent("it names no two commits", _GIVEN),
}
