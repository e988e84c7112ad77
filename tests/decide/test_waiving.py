from __future__ import annotations

import datetime

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.waivers import TODAY, make_waiver, slowed
from tunegate.artifacts.builds import Cell
from tunegate.artifacts.measurements import Interval
from tunegate.decide.waiving import Slowdown, notes, standing

CELL = Cell(model="models/m.onnx", target="cpu")
DAY = datetime.timedelta(days=1)


def change(high: float) -> tuple[Slowdown, ...]:
    return slowed(Interval(low=high - 2, center=high - 1, high=high))


@pytest.mark.parametrize(
    ("high", "found"), [(7.9, "covers"), (8.0, "exceeded"), (30.0, "exceeded")]
)
def test_the_whole_interval_must_lie_below_the_ceiling(high: float, found: str) -> None:
    assert standing(make_waiver(ceiling_percent=8.0), change(high), TODAY) == found


def test_the_last_day_still_counts_and_the_next_does_not() -> None:
    assert standing(make_waiver(expires=TODAY), change(5.0), TODAY) == "covers"
    assert standing(make_waiver(expires=TODAY - DAY), change(5.0), TODAY) == "expired"


def test_nothing_is_waived_without_a_waiver_or_without_an_interval() -> None:
    assert standing(None, change(5.0), TODAY) == "none"
    assert standing(make_waiver(), (), TODAY) == "exceeded"


def test_expired_and_needless_waivers_are_named() -> None:
    expired = make_waiver(model="models/a.onnx", expires=TODAY - DAY)
    needless, needed = make_waiver(), make_waiver(target="gpu")
    unmeasured = make_waiver(model="models/b.onnx")
    used = {CELL: False, Cell(model="models/m.onnx", target="gpu"): True}
    first, second = notes([expired, needless, needed, unmeasured], used, TODAY)
    assert "models/a.onnx on cpu expired" in first
    assert "models/m.onnx on cpu is not needed by this change" in second


def test_a_waiver_of_a_model_is_needed_where_one_of_its_profiles_needs_it() -> None:
    short, long = (msgspec.structs.replace(CELL, model=f"{CELL.model}@{p}") for p in ("a", "b"))
    assert [*notes([make_waiver()], {short: False, long: True}, TODAY)] == []
    (told,) = notes([make_waiver()], {short: False, long: False}, TODAY)
    assert told.startswith("the waiver of models/m.onnx on cpu is not needed")
    own = make_waiver(model=long.model)
    (told,) = notes([make_waiver(), own], {short: False, long: True}, TODAY)
    assert told.startswith("the waiver of models/m.onnx on cpu is not needed")


@given(st.floats(-5, 50), st.floats(0.1, 50), st.integers(-100, 90))
def test_nothing_over_the_ceiling_or_after_the_day_is_ever_covered(
    high: float, ceiling: float, days: int
) -> None:
    waiver = make_waiver(ceiling_percent=ceiling, expires=TODAY + days * DAY)
    if standing(waiver, change(high), TODAY) == "covers":
        assert high < ceiling
        assert days >= 0
