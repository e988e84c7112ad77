"""Every kind of job of CircleCI: what it compares and may write. README.md shows
this table."""

from __future__ import annotations

from tunegate.ci.events import EventTable, JudgedEvent

_TARGET = (
    "the merge base with `TUNEGATE_TARGET_BRANCH`, which the orb's `target-branch` sets; without "
    "it, with the default branch"
)

CIRCLECI_EVENTS: EventTable = {
    "pull_request": JudgedEvent(
        base=_TARGET,
        head="the head of the pull request",
        writes="`pr/<organization>/<project>/<number>`",
    ),
    "fork": JudgedEvent(base=_TARGET, head="the head of the pull request", writes="nothing"),
    "branch": JudgedEvent(
        base="on the default branch the commit before, by the orb's `base-revision`, else the "
        "parent; elsewhere the merge base with the default branch",
        head="the commit of the job",
        writes="`main` from the default branch, else `pr/<organization>/<project>/branch_<name>`; "
        "without CIRCLE_PROJECT_USERNAME nothing",
    ),
    "tag": JudgedEvent(
        base="the release before, with `--since-release`",
        head="the commit of the tag",
        writes="nothing",
    ),
}
