"""Every kind of pipeline of Bitbucket: what it compares and may write, or why it is refused.
README.md shows this table."""

from __future__ import annotations

from tunegate.ci.events import EventTable, JudgedEvent, RefusedEvent

_DEFAULT = "the merge base with the default branch; on it, its parent"

BITBUCKET_EVENTS: EventTable = {
    "pull-requests": JudgedEvent(
        base="the merge base with the destination branch",
        head="the head of the pull request with the destination merged into it, as Bitbucket "
        "checks it out",
        writes="`pr/<workspace>/<repository>/<number>`; of a fork nothing",
    ),
    "branches": JudgedEvent(
        base=_DEFAULT,
        head="the commit of the pipeline",
        writes="`main` from `TUNEGATE_DEFAULT_BRANCH`, else "
        "`pr/<workspace>/<repository>/branch_<name>`",
    ),
    "tags": JudgedEvent(
        base="the release before, with `--since-release`",
        head="the commit of the tag",
        writes="nothing",
    ),
    "custom": JudgedEvent(base=_DEFAULT, head="the commit of the pipeline", writes="nothing"),
    "bookmarks": RefusedEvent("it is of Mercurial", "Use a Git repository."),
}
"""A `custom` pipeline that was started on a branch is one of `branches`."""
