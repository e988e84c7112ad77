from __future__ import annotations

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.report.budgeted import FLOAT32, make_error, make_side
from tunegate.artifacts.builds import SampledErrors, SideError
from tunegate.artifacts.measurements import Interval
from tunegate.config import AccuracyConfig
from tunegate.decide.error_budget import OffPercent, estimated, is_larger, moved_errors

BUDGET = AccuracyConfig(max_error=50.0, min_agreement=50.0)
SAME = Interval(low=-1.0, center=0.1, high=1.2)
BOUND = st.floats(0, 100)
OFF = st.tuples(BOUND, BOUND).map(sorted).map(lambda pair: OffPercent(*pair))


def side_of(*relative: float, wrong: int = 0) -> SideError:
    agrees = (*(False,) * wrong, *(True,) * (len(relative) - wrong))
    errors = SampledErrors(relative=relative, agrees=agrees)
    return SideError(title="A", estimates=estimated(errors, BUDGET))


def drawn(seed: int, factor: float) -> SideError:
    """Errors of 74 inputs whose logarithms are normal."""
    numbers = random.Random(seed)
    return side_of(*(factor * numbers.lognormvariate(-4, 0.5) for _ in range(74)))


@given(OFF, OFF)
def test_at_most_one_of_two_is_larger_and_none_where_they_touch(
    one: OffPercent, other: OffPercent
) -> None:
    assert not (is_larger(one, other) and is_larger(other, one))
    assert not is_larger(one, one)
    touch = other.low <= (one.high or 0) and one.low <= (other.high or 0)
    assert not (touch and is_larger(one, other))


@given(OFF, OFF, BOUND)
def test_what_is_larger_stays_so_when_it_grows(
    before: OffPercent, after: OffPercent, more: float
) -> None:
    grown = OffPercent(after.low + more, (after.high or 0) + more)
    assert is_larger(before, grown) or not is_larger(before, after)


def test_noise_alone_hardly_ever_moves_an_error() -> None:
    found = [moved_errors(drawn(2 * at, 1), drawn(2 * at + 1, 1), SAME) for at in range(300)]
    assert sum(map(bool, found)) <= 15


def test_an_error_that_is_four_times_as_large_is_found() -> None:
    found = [moved_errors(drawn(2 * at, 1), drawn(2 * at + 1, 5), SAME) for at in range(100)]
    assert sum(each == ("max-error",) for each in found) >= 90


@pytest.mark.parametrize(
    ("change", "moved"),
    [
        (None, ("max-error",)),
        (SAME, ("max-error",)),
        (Interval(low=3.0, center=4.0, high=5.0), ("max-error",)),
        (Interval(low=-9.0, center=-8.0, high=-7.0), ()),
    ],
)
def test_only_a_clearly_faster_head_may_be_less_exact(
    change: Interval | None, moved: tuple[str, ...]
) -> None:
    before, after = side_of(*(0.01,) * 74), side_of(*(0.02,) * 74)
    assert moved_errors(before, after, change) == moved
    assert moved_errors(after, before, change) == ()


def test_float32_may_be_off_by_what_every_float32_build_may() -> None:
    inside, outside = side_of(*(0.0009,) * 74), side_of(*(0.0011,) * 74)
    assert moved_errors(FLOAT32, inside, SAME) == ()
    assert moved_errors(FLOAT32, outside, SAME) == ("max-error",)
    assert moved_errors(outside, FLOAT32, SAME) == ()


def test_fewer_agreements_are_a_larger_error() -> None:
    exact = (0.0,) * 149
    assert moved_errors(side_of(*exact), side_of(*exact, wrong=30), SAME) == ("min-agreement",)
    assert moved_errors(side_of(*exact), side_of(*exact, wrong=1), SAME) == ()


def test_without_a_bound_or_a_side_nothing_is_said() -> None:
    unbounded = make_side(make_error(0.8, 0.7, None))
    worse = make_side(make_error(9.0, 8.0, None))
    assert moved_errors(unbounded, worse, SAME) == ()
    assert moved_errors(None, worse, SAME) == ()
    assert moved_errors(worse, None, SAME) == ()
