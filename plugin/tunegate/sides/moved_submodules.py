"""Submodules that a change moves: models in them are another repository's."""

from __future__ import annotations

from collections.abc import Iterator

from tunegate.artifacts.changes import Revisions
from tunegate.ports import ModelReader

_SHOWN = 12


def moved_submodules(reader: ModelReader, revisions: Revisions) -> Iterator[str]:
    """Yields a note for each submodule that is new in the head, or at another commit there."""
    before = {} if revisions.base is None else reader.submodules(revisions.base)
    for path, commit in sorted(reader.submodules(revisions.head).items()):
        if before.get(path) != commit:
            yield (
                f"the submodule {path} is at another commit ({commit[:_SHOWN]}), and models in it "
                f"are not checked: gate them with --repository {path}"
            )
