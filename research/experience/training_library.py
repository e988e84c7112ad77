"""Imports what needs a training library, which nothing else of research does."""

from __future__ import annotations

import importlib
from types import ModuleType

from tunegate.errors import EnvironmentUnfitError


def training_library() -> ModuleType:
    """`network.taught_network`. Raises EnvironmentUnfitError where jax or optax is not
    installed."""
    try:
        return importlib.import_module("research.experience.network.taught_network")
    except ImportError as error:
        raise EnvironmentUnfitError(
            f"training needs {error.name or 'jax'}, which cannot be imported. "
            "Run: pip install jax optax"
        ) from error
