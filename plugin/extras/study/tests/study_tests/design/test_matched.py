from __future__ import annotations

from study_tests.design.synthetic import LAYOUT, TUNING, measured_study, settings_of
from tunegate_study.design.matched import main_weights, pair_weights
from tunegate_study.design.measured import MeasuredCell, measured_cells

AXES = [LAYOUT, TUNING]


def cells(settings: list[dict[str, str]]) -> tuple[MeasuredCell, ...]:
    return measured_cells(measured_study(settings, lambda _: 0.0))


def test_only_settings_that_have_both_count() -> None:
    every = settings_of(AXES)
    whole = main_weights(cells(every), "tuning", "64", "untuned")
    assert whole == ([-0.5, 0.5, -0.5, 0.5], 2)
    assert main_weights(cells(every[:-1]), "tuning", "64", "untuned") == ([-1.0, 1.0, 0.0], 1)
    assert main_weights(cells(every[::3]), "tuning", "64", "untuned") == ([0.0, 0.0], 0)


def test_a_pair_needs_all_four() -> None:
    levels = {"layout": ("nhwc", "nchw"), "tuning": ("64", "untuned")}
    assert pair_weights(cells(settings_of(AXES)), levels) == ([1.0, -1.0, -1.0, 1.0], 1)
    assert pair_weights(cells(settings_of(AXES)[:-1]), levels) == ([0.0, 0.0, 0.0], 0)
