"""What needs a training library, which no other command does."""

from __future__ import annotations

import importlib
from types import ModuleType

from tunegate.errors import EnvironmentUnfitError


def training_library() -> ModuleType:
    """`edges.training.taught_network`. Raises EnvironmentUnfitError where jax or optax is not
    installed."""
    try:
        return importlib.import_module("tunegate.edges.training.taught_network")
    except ImportError as error:
        raise EnvironmentUnfitError(
            f"training needs {error.name or 'jax'}, which cannot be imported. "
            "Run: pip install 'tunegate[train]'"
        ) from error
