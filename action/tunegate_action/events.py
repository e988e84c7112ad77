"""Every event of GitHub that can start a workflow: what it compares and may write, or why it is
refused and what to use instead. docs/github-action.md shows this table."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import msgspec


class Judged(msgspec.Struct, frozen=True, kw_only=True):
    """What base and head are, and what of the cache the run may write."""

    base: str
    head: str
    writes: str


class Refused(msgspec.Struct, frozen=True):
    """`instead` is what to do, as a whole sentence."""

    reason: str
    instead: str


_PULL_REQUEST = "Use pull_request."
_GIVEN = "Use pull_request, push or merge_group, or give the inputs base and head."
_RIGHTS = "it runs with the rights and the checkout of the default branch, not of the pull request"
_NOTHING = "it changes no commit"

EVENTS: Mapping[str, Judged | Refused] = {
    "pull_request": Judged(
        base="first parent of the merge commit; where the head is checked out, the merge base",
        head="the merge commit, or the head of the pull request",
        writes="`pr/<owner>/<repository>/<number>`; of a fork nothing",
    ),
    "merge_group": Judged(
        base="the group's base",
        head="the group's head",
        writes="`pr/<owner>/<repository>/queue`",
    ),
    "push": Judged(
        base="the commit before; for a new branch, or where that commit is gone, the merge base "
        "with the default branch",
        head="the commit after",
        writes="`main` from the default branch, else `pr/<owner>/<repository>/branch_<name>`",
    ),
    "schedule": Judged(
        base="its first parent: one commit only; with `since-release` the release before",
        head="the tip of the default branch",
        writes="`main`",
    ),
    "workflow_dispatch": Judged(
        base="the merge base with the default branch, or on it the first parent; with "
        "`since-release` the release before",
        head="the commit that it was started on",
        writes="as a push to that branch; from a tag nothing",
    ),
    "release": Judged(
        base="the release before; the input `since-release` must be `true`",
        head="the commit of the tag",
        writes="nothing",
    ),
    "pull_request_target": Refused(_RIGHTS, _PULL_REQUEST),
    "workflow_run": Refused(_RIGHTS, "Use the event that started the other workflow."),
    "issue_comment": Refused(_RIGHTS, _PULL_REQUEST),
    "pull_request_comment": Refused("it is no event: GitHub sends issue_comment", _PULL_REQUEST),
    "pull_request_review": Refused("it changes no commit of the pull request", _PULL_REQUEST),
    "pull_request_review_comment": Refused(
        "it changes no commit of the pull request", _PULL_REQUEST
    ),
    "workflow_call": Refused(
        "a called workflow has the event of its caller", "Call it from one of the events above."
    ),
    "repository_dispatch": Refused(
        "whoever sends it says what it means", "Use workflow_dispatch, or give base and head."
    ),
    "create": Refused("a new branch or tag is a push too", "Use push."),
    "delete": Refused("what it is about is gone", "Use push or pull_request."),
    "deployment": Refused("it names what is deployed, and nothing to compare it with", _GIVEN),
    "deployment_status": Refused("it names what is deployed, and nothing to compare it with", _GIVEN),
    "check_run": Refused("it names a commit, and nothing to compare it with", _GIVEN),
    "check_suite": Refused("it names a commit, and nothing to compare it with", _GIVEN),
    "status": Refused("it names a commit, and nothing to compare it with", _GIVEN),
    "registry_package": Refused("a package names no two commits", _GIVEN),
    "image_version": Refused("an image names no two commits", _GIVEN),
    **{
        name: Refused(_NOTHING, _GIVEN)
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


def as_markdown() -> str:
    """The table of docs/github-action.md."""
    return "\n".join(_lines())


def _lines() -> Iterator[str]:
    yield "| event | base | head | cache it may write |"
    yield "|---|---|---|---|"
    for name, row in EVENTS.items():
        if isinstance(row, Judged):
            yield f"| `{name}` | {row.base} | {row.head} | {row.writes} |"
    yield ""
    yield "| refused | because | instead |"
    yield "|---|---|---|"
    refused: dict[Refused, list[str]] = {}
    for name, row in EVENTS.items():
        if isinstance(row, Refused):
            refused.setdefault(row, []).append(f"`{name}`")
    for row, names in refused.items():
        yield f"| {', '.join(names)} | {row.reason} | {row.instead} |"
