"""Every kind of build of Buildkite: what it compares and may write, or why it is refused.
README.md shows this table."""

from __future__ import annotations

from tunegate.ci.events import EventTable, JudgedEvent, RefusedEvent

_DEFAULT = "the merge base with the default branch; on it, its parent"
_ANY_COMMIT = JudgedEvent(
    base=_DEFAULT,
    head="the commit that it was started on",
    writes="nothing: whoever starts it names branch and commit freely",
)

BUILDKITE_EVENTS: EventTable = {
    "pull_request": JudgedEvent(
        base="the merge base with the target branch",
        head="the head of the pull request, or its merge with the target",
        writes="`pr/<organization>/<pipeline>/<number>`; of a fork, or from another pipeline, "
        "nothing",
    ),
    "merge_queue": JudgedEvent(
        base="the commit that the queue merges onto",
        head="the commit of the queue",
        writes="`pr/<organization>/<pipeline>/queue`",
    ),
    "tag": JudgedEvent(
        base="the release before, with `--since-release`",
        head="the commit of the tag",
        writes="nothing",
    ),
    "webhook": JudgedEvent(
        base=_DEFAULT,
        head="the commit that was pushed",
        writes="`main` from the default branch, else `pr/<organization>/<pipeline>/branch_<name>`",
    ),
    "schedule": JudgedEvent(
        base=_DEFAULT,
        head="the commit that it was started on",
        writes="as a push to that branch",
    ),
    "ui": _ANY_COMMIT,
    "api": _ANY_COMMIT,
    "trigger_job": _ANY_COMMIT,
    "frontend": RefusedEvent(
        "Buildkite calls it ui since 2019", "Update the agent, or name --base and --head."
    ),
}
"""The last five are values of BUILDKITE_SOURCE, for builds that are none of the first three."""
