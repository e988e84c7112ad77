"""Every event of GitHub that can start a workflow: what it compares and may write, or why it is
refused and what to use instead. docs/how-to/github.md shows this table."""

from __future__ import annotations

from tunegate.ci_hosts.event_table import EventTable, JudgedEvent, RefusedEvent

_PULL_REQUEST = "Use pull_request."
_GIVEN = "Use pull_request, push or merge_group, or give the inputs base and head."
_RIGHTS = "it runs with the rights and the checkout of the default branch, not of the pull request"
_NOTHING = "it changes no commit"

GITHUB_EVENTS: EventTable = {
    "pull_request": JudgedEvent(
        base="first parent of the merge commit; where the head is checked out, the merge base",
        head="the merge commit, or the head of the pull request",
        writes="`pr/<owner>/<repository>/<number>`; of a fork nothing",
    ),
    "merge_group": JudgedEvent(
        base="the group's base",
        head="the group's head",
        writes="`pr/<owner>/<repository>/queue`",
    ),
    "push": JudgedEvent(
        base="of the default branch the commit before; of another branch its merge base with the "
        "default branch",
        head="the commit after",
        writes="`main` from the default branch, else `pr/<owner>/<repository>/branch_<name>`",
    ),
    "schedule": JudgedEvent(
        base="its first parent: one commit only; with `since-release` the release before",
        head="the tip of the default branch",
        writes="`main`",
    ),
    "workflow_dispatch": JudgedEvent(
        base="the merge base with the default branch, or on it the first parent; with "
        "`since-release` the release before",
        head="the commit that it was started on",
        writes="as a push to that branch; from a tag nothing",
    ),
    "release": JudgedEvent(
        base="the release before; the input `since-release` must be `true`",
        head="the commit of the tag",
        writes="nothing",
    ),
    "pull_request_target": RefusedEvent(_RIGHTS, _PULL_REQUEST),
    "workflow_run": RefusedEvent(
        _RIGHTS,
        "Use the event that started the other workflow; stage comment alone may report on it.",
    ),
    "issue_comment": RefusedEvent(_RIGHTS, _PULL_REQUEST),
    "pull_request_comment": RefusedEvent(
        "it is no event: GitHub sends issue_comment", _PULL_REQUEST
    ),
    "pull_request_review": RefusedEvent("it changes no commit of the pull request", _PULL_REQUEST),
    "pull_request_review_comment": RefusedEvent(
        "it changes no commit of the pull request", _PULL_REQUEST
    ),
    "workflow_call": RefusedEvent(
        "a called workflow has the event of its caller", "Call it from one of the events above."
    ),
    "repository_dispatch": RefusedEvent(
        "whoever sends it says what it means", "Use workflow_dispatch, or give base and head."
    ),
    "create": RefusedEvent("a new branch or tag is a push too", "Use push."),
    "delete": RefusedEvent("what it is about is gone", "Use push or pull_request."),
    "deployment": RefusedEvent("it names what is deployed, and nothing to compare it with", _GIVEN),
    "deployment_status": RefusedEvent(
        "it names what is deployed, and nothing to compare it with", _GIVEN
    ),
    "check_run": RefusedEvent("it names a commit, and nothing to compare it with", _GIVEN),
    "check_suite": RefusedEvent("it names a commit, and nothing to compare it with", _GIVEN),
    "status": RefusedEvent("it names a commit, and nothing to compare it with", _GIVEN),
    "registry_package": RefusedEvent("a package names no two commits", _GIVEN),
    "image_version": RefusedEvent("an image names no two commits", _GIVEN),
    **{
        name: RefusedEvent(_NOTHING, _GIVEN)
        for name in (
            "branch_protection_rule",
            "discussion",
            "discussion_comment",
            "fork",
            "gollum",
            "issues",
            "label",
            "milestone",
            "page_build",
            "project",
            "project_card",
            "project_column",
            "public",
            "watch",
        )
    },
}  # fmt: skip
