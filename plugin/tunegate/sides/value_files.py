"""Files of values that a change replaces: a policy change, since the base's count."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from tunegate.artifacts.changes import ModelPath, PolicyChange, Revisions
from tunegate.artifacts.model_names import path_of
from tunegate.config import Config
from tunegate.ports import ModelReader
from tunegate.selection import values_for
from tunegate.sides.named_files import JudgingFile, replacements


def replaced_values(
    reader: ModelReader, revisions: Revisions, config: Config, names: Iterable[ModelPath]
) -> Iterator[PolicyChange]:
    """Yields the policy changes that replace values of these models."""
    return replacements(_files(config, names), revisions, reader.blob)


def _files(config: Config, names: Iterable[ModelPath]) -> Iterator[JudgingFile]:
    """Yields each file of each model once, whatever profiles share it."""
    found = {
        (path_of(name), given, file.removeprefix("./"))
        for name in names
        for given, values in values_for(config, name).items()
        for file in values.files
    }
    for model, given, file in sorted(found):
        yield JudgingFile(f"models[].inputs.{given}.values", file, model)
