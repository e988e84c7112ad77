"""Every kind of build of Jenkins: what it compares and may write, or why it is refused.
README.md shows this table."""

from __future__ import annotations

from tunegate.ci.events import EventTable, JudgedEvent

_REQUEST = "the merge base with `CHANGE_TARGET`; of a merge with it, what it was merged onto"
_REQUEST_HEAD = "the head of the change, or its merge with the target"

JENKINS_EVENTS: EventTable = {
    "change": JudgedEvent(
        base=_REQUEST, head=_REQUEST_HEAD, writes="`pr/<job>/<number>`; without a number nothing"
    ),
    "fork": JudgedEvent(base=_REQUEST, head=_REQUEST_HEAD, writes="nothing"),
    "primary": JudgedEvent(
        base="the commit of the last successful build; without one the parent",
        head="the commit of the build",
        writes="`main`",
    ),
    "branch": JudgedEvent(
        base="the merge base with the default branch; on it, its parent",
        head="the commit of the build",
        writes="`pr/<job>/branch_<name>`",
    ),
    "tag": JudgedEvent(
        base="the release before, with `--since-release`",
        head="the commit of the tag",
        writes="nothing",
    ),
    "single": JudgedEvent(
        base="the merge base with the default branch; on it, its parent",
        head="what is checked out",
        writes="nothing: a job without a branch does not say who started it",
    ),
}
"""`change` and `fork` have CHANGE_ID, `tag` has TAG_NAME, `primary` BRANCH_IS_PRIMARY."""
