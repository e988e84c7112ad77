"""Files of values that a change replaces: a policy change, since the base's count."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from tunegate.artifacts.changes import ModelPath, PolicyChange, Revisions
from tunegate.artifacts.model_names import path_of
from tunegate.config import Config
from tunegate.ports import ModelReader
from tunegate.selection import values_for


def replaced_values(
    reader: ModelReader, revisions: Revisions, config: Config, names: Iterable[ModelPath]
) -> Iterator[PolicyChange]:
    """Yields what the change does to the values of these models. Files that the base does not have
    are new, and change nothing; those that a branch has not touched since it was begun are the
    base's to replace."""
    base, fork = revisions.judged_by, revisions.forked_at
    if base is None:
        return
    for name, given, file in _files(config, names):
        old, new = reader.blob(base, file), reader.blob(revisions.head, file)
        is_untouched = fork is not None and reader.blob(fork, file) == new
        if old and old != new and not is_untouched:
            yield PolicyChange(
                key=f"models[].inputs.{given}.values",
                old=f"{file} {old[:12]}",
                new=f"{file} {new[:12]}" if new else "deleted",
                effect="changed",
                counts="once merged",
                model=path_of(name),
            )


def _files(config: Config, names: Iterable[ModelPath]) -> Iterator[tuple[ModelPath, str, str]]:
    """Each file of each model once, whatever profiles share it."""
    yield from sorted(
        {
            (path_of(name), given, file.removeprefix("./"))
            for name in names
            for given, values in values_for(config, name).items()
            for file in values.files
        }
    )
