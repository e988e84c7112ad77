"""Every reason of a run of Azure Pipelines: what it compares and may write, or why it is refused.
README.md shows this table."""

from __future__ import annotations

from tunegate.ci.events import EventTable, JudgedEvent, RefusedEvent

_DEFAULT = "the merge base with the default branch; on it, its parent"
_PUSH = JudgedEvent(
    base=_DEFAULT,
    head="the commit of the run",
    writes="`main` from `TUNEGATE_DEFAULT_BRANCH`, else `pr/<repository>/branch_<name>`; from a "
    "tag nothing",
)
_STARTED = JudgedEvent(
    base=_DEFAULT,
    head="the commit of the run",
    writes="nothing: whoever starts it chooses branch and commit",
)
_TFVC = RefusedEvent("it is of TFVC, not of git", "Use a Git repository.")

AZURE_EVENTS: EventTable = {
    "PullRequest": JudgedEvent(
        base="the merge base with the target branch",
        head="the merge commit that Azure Pipelines checks out",
        writes="`pr/<repository>/<number>`; of a fork nothing",
    ),
    "IndividualCI": _PUSH,
    "BatchedCI": _PUSH,
    "Schedule": _PUSH,
    "Manual": _STARTED,
    "ResourceTrigger": _STARTED,
    "BuildCompletion": _STARTED,
    "ValidateShelveset": _TFVC,
    "CheckInShelveset": _TFVC,
    "Triggered": RefusedEvent("it names no commit", "Use pull request validation."),
}
