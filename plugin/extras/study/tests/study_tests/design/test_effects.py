from __future__ import annotations

import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from study_tests.design.synthetic import (
    LAYOUT,
    RUNTIME,
    THREADS,
    TUNING,
    Truth,
    measured_study,
    settings_of,
)
from tunegate_study.design.effects import Estimates, main_effects, pair_effects
from tunegate_study.design.fraction import chosen_cells
from tunegate_study.design.measured import measured_cells
from tunegate_study.studies import Axis, CellSetting, MainEffect, PairEffect

AXES = [RUNTIME, TUNING, LAYOUT, THREADS]
SIZES = st.floats(-1, 1)


def effects(
    truth: Truth, most: int, seed: int = 1, axes: list[Axis] = AXES
) -> tuple[tuple[MainEffect, ...], tuple[PairEffect, ...]]:
    chosen = chosen_cells(axes, settings_of(axes), most)
    cells = measured_cells(measured_study(chosen, truth, seed=seed))
    estimates = Estimates(axes, cells, is_full=most >= len(settings_of(axes)))
    return main_effects(axes, estimates), pair_effects(axes, estimates)


def truth_of(tvm: float, tuned: float, both: float) -> Truth:
    def truth(setting: CellSetting) -> float:
        is_tvm, is_tuned = setting["runtime"] == "tvm", setting["tuning"] == "64"
        return tvm * is_tvm + tuned * is_tuned + both * (is_tvm and is_tuned)

    return truth


@pytest.mark.parametrize("most", [24, 18])
@settings(max_examples=10, deadline=None)
@given(tvm=SIZES, tuned=SIZES, both=SIZES, seed=st.integers(1, 1000))
def test_effects_come_back_as_they_were_put_in(
    most: int, tvm: float, tuned: float, both: float, seed: int
) -> None:
    """A full factorial, and three quarters of it."""
    main, pairs = effects(truth_of(tvm, tuned, both), most, seed)
    found = {(each.axis, each.level): each.percent for each in main}
    assert math.log1p(found["runtime", "tvm"].center / 100) == pytest.approx(
        tvm + both / 2, abs=0.03
    )
    assert math.log1p(found["tuning", "64"].center / 100) == pytest.approx(
        tuned + both / 3, abs=0.03
    )
    (pair,) = (e for e in pairs if e.axes == ("runtime", "tuning") and e.levels == ("tvm", "64"))
    assert math.log1p(pair.percent.center / 100) == pytest.approx(both, abs=0.05)


def test_what_adds_up_is_not_clear_and_what_does_not_is() -> None:
    main, pairs = effects(truth_of(0.3, -0.2, 0.0), 24)
    assert [e.is_clear for e in main if e.axis == "runtime"] == [True, False]
    assert not any(each.is_clear for each in pairs)
    _, pairs = effects(truth_of(0.3, -0.2, -0.3), 24)
    assert [(each.axes, each.levels) for each in pairs if each.is_clear] == [
        (("runtime", "tuning"), ("tvm", "64"))
    ]


def test_no_effect_is_hardly_ever_clear() -> None:
    """The family's error is 5% at the most, over all of its effects."""
    studies = [effects(lambda _: 0.0, 24, seed, AXES) for seed in range(60)]
    wrong = sum(any(each.is_clear for each in main) for main, _ in studies)
    assert wrong <= 8
    missed = [
        any(not each.percent.low <= 0 <= each.percent.high for each in pairs)
        for _, pairs in studies
    ]
    assert sum(missed) <= 8


def test_models_have_no_main_effect() -> None:
    axes = [Axis(name="model", levels=("a", "b")), TUNING]
    main, pairs = effects(lambda _: 0.0, 4, axes=axes)
    assert {each.axis for each in main} == {"tuning"}
    assert {each.axes for each in pairs} == {("model", "tuning")}


def test_a_pair_that_is_there_is_not_found_in_others_of_a_fraction_with_holes() -> None:
    """One runtime has one level of tuning, and half of the cells were measured."""
    possible = [s for s in settings_of(AXES) if (s["runtime"], s["tuning"]) != ("openvino", "64")]
    chosen = chosen_cells(AXES, possible, 18)
    cells = measured_cells(measured_study(chosen, truth_of(0.3, -0.2, -0.5)))
    pairs = pair_effects(AXES, Estimates(AXES, cells, is_full=False))
    assert [each.axes for each in pairs if each.is_clear] == [("runtime", "tuning")]
