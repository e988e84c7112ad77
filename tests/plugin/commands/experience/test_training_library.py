from __future__ import annotations

import sys

import pytest

from tunegate.commands.experience.training_library import training_library
from tunegate.errors import EnvironmentUnfitError

EDGE = "tunegate.edges.training.taught_network"


def test_without_a_training_library_it_says_how_to_install_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(sys.modules, EDGE, None)
    with pytest.raises(EnvironmentUnfitError, match=r"pip install 'tunegate\[train\]'"):
        training_library()


def test_it_is_the_edge_that_trains() -> None:
    assert training_library().__name__ == EDGE
