from __future__ import annotations

import pytest

from study_tests.design.synthetic import (
    LAYOUT,
    RUNTIME,
    THREADS,
    TUNING,
    measured_study,
    settings_of,
)
from tunegate_study.design.fitted import fitted_pairs, fitted_weights
from tunegate_study.design.matched import main_weights, pair_weights
from tunegate_study.design.measured import measured_cells

AXES = [RUNTIME, TUNING, LAYOUT, THREADS]


def test_a_fit_of_all_cells_is_what_matched_cells_say() -> None:
    cells = measured_cells(measured_study(settings_of(AXES), lambda _: 0.0))
    pairs = fitted_pairs(AXES, cells)
    main = {"runtime": ("tvm", "onnxruntime")}
    matched, _ = main_weights(cells, "runtime", "tvm", "onnxruntime")
    assert fitted_weights(AXES, cells, main, pairs) == pytest.approx(matched)
    both = {"runtime": ("tvm", "onnxruntime"), "tuning": ("64", "untuned")}
    matched, _ = pair_weights(cells, both)
    assert fitted_weights(AXES, cells, both, pairs) == pytest.approx(matched)


def test_what_the_cells_cannot_tell_is_none() -> None:
    settings = [each for each in settings_of([LAYOUT, TUNING]) if each["layout"] == "nhwc"]
    cells = measured_cells(measured_study(settings, lambda _: 0.0))
    axes = [LAYOUT, TUNING]
    assert fitted_weights(axes, cells, {"layout": ("nhwc", "nchw")}, ()) is None
    assert fitted_weights(axes, cells, {"tuning": ("64", "untuned")}, ()) is not None


def test_pairs_are_fitted_only_with_room_for_all_of_them() -> None:
    cells = measured_cells(measured_study(settings_of([LAYOUT, TUNING]), lambda _: 0.0))
    assert fitted_pairs([LAYOUT, TUNING], cells) == ()
