from __future__ import annotations

from tests.support.waivers import make_waiver
from tunegate.artifacts.builds import Cell


def test_a_waiver_is_of_one_model_on_one_target() -> None:
    waiver = make_waiver()
    assert waiver.cell == Cell(model=waiver.model, target=waiver.target)
