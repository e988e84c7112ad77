from __future__ import annotations

import sys

import pytest

from research.experience.training_library import training_library
from tunegate.errors import EnvironmentUnfitError

EDGE = "research.experience.network.taught_network"


def test_without_a_training_library_it_says_how_to_install_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(sys.modules, EDGE, None)
    with pytest.raises(EnvironmentUnfitError, match="pip install jax optax"):
        training_library()


def test_it_is_what_trains() -> None:
    pytest.importorskip("jax")
    pytest.importorskip("optax")
    assert training_library().__name__ == EDGE
