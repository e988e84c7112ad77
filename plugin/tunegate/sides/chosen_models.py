"""The models that globs of the command line choose."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from tunegate.artifacts.changes import ChangeSet
from tunegate.artifacts.model_names import path_of
from tunegate.errors import ConfigError
from tunegate.globs import matches


def chosen_models(changes: ChangeSet, globs: Sequence[str]) -> ChangeSet:
    """All of them without a glob. Raises ConfigError for a glob that matches no model."""
    paths = [path_of(change.path) for change in changes.models]
    for glob in globs:
        if not any(matches(glob, path) for path in paths):
            raise ConfigError(f"--model: {glob} matches no configured model.")
    if not globs:
        return changes
    chosen = [c for c in changes.models if any(matches(g, path_of(c.path)) for g in globs)]
    return msgspec.structs.replace(changes, models=tuple(chosen))
