"""One model on both sides of a comparison: neither is built, since neither can be slower."""

from __future__ import annotations

from tunegate.artifacts.changes import ChangeSet, Revisions
from tunegate.commands.comparing.operands import AgainstModel, Model
from tunegate.edges.models.file_pair import FilePair


def is_one_model(both: AgainstModel, pair: FilePair) -> bool:
    """Returns whether both sides are the same model under the same runtime. Raises ModelError for a
    file that is no model."""
    return (
        isinstance(both.base, Model) and both.base.runtime == both.head.runtime and pair.are_same()
    )


def unchanged(both: AgainstModel) -> ChangeSet:
    """Returns the change set of a comparison without a difference."""
    name = both.head.file.name
    revisions = Revisions(base=name, head=name, reason="one model on both sides")
    return ChangeSet(revisions=revisions, models=(), unchanged=(name,))
