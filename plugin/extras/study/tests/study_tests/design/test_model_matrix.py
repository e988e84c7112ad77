from __future__ import annotations

import numpy as np

from study_tests.design.synthetic import LAYOUT, RUNTIME, TUNING, settings_of
from tunegate_study.design.model_matrix import ModelMatrix, pairs_of, rank, varied_axes
from tunegate_study.studies import Axis

ONE = Axis(name="target", levels=("cpu",))


def test_an_axis_of_one_level_has_no_column() -> None:
    assert varied_axes([ONE, LAYOUT]) == [LAYOUT]
    assert ModelMatrix([ONE, LAYOUT]).main_columns == 2
    assert pairs_of([ONE, LAYOUT, TUNING]) == [("layout", "tuning")]


def test_columns_of_a_full_factorial_sum_to_zero_and_are_of_full_rank() -> None:
    axes = [RUNTIME, TUNING, LAYOUT]
    rows = ModelMatrix(axes, pairs_of(axes)).rows(settings_of(axes))
    assert rows.shape == (12, 1 + 2 + 1 + 1 + 2 + 2 + 1)
    assert np.allclose(rows[:, 1:].sum(axis=0), 0)
    assert rank(rows) == rows.shape[1]
