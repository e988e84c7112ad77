"""Submodules that a change moves: models in them are another repository's."""

from __future__ import annotations

import shlex
from collections.abc import Iterator

from tunegate.artifacts.changes import Revisions
from tunegate.ports import ModelReader

_SHOWN = 12


def moved_submodules(reader: ModelReader, revisions: Revisions) -> Iterator[str]:
    """Yields a note for each submodule that is new in the head, or at another commit there, with
    how models in it are gated."""
    before = {} if revisions.base is None else reader.submodules(revisions.base)
    for path, commit in sorted(reader.submodules(revisions.head).items()):
        old = before.get(path)
        if old == commit:
            continue
        new, where = commit[:_SHOWN], f"--repository {shlex.quote(path)}"
        if old is None:
            said, line = f"is new, at commit {new}", f"{where} --no-base"
        else:
            said = f"is at another commit ({new}, before {old[:_SHOWN]})"
            line = f"{where} --base {old[:_SHOWN]} --head {new}"
        told = f"the submodule {path} {said}, and models in it are not checked"
        yield f"{told}: gate them with {line}"
