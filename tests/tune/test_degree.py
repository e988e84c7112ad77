"""DOPpler's control law: grow, shrink, never stand still where it is too much."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tunegate.tune.parallel_measurement import FIRST_CEILING, PUBLISHED, Degree, adjusted

degrees = st.builds(Degree, now=st.integers(1, 128), ceiling=st.integers(1, FIRST_CEILING))
errors = st.floats(0, 2)


def after(*disturbed: bool, most: int = 128) -> list[int]:
    """The degrees from batch to batch."""
    degree, found = Degree(), [1]
    for is_disturbed in disturbed:
        degree = adjusted(degree, error=0.5 if is_disturbed else 0.0, failures=0, most=most)
        found.append(degree.now)
    return found


def test_undisturbed_batches_grow_by_the_most_a_step_may_be() -> None:
    assert after(False, False, False) == [1, 9, 17, 25]


def test_a_disturbed_batch_costs_a_fifth_of_the_degree_and_says_where_the_ceiling_is() -> None:
    degree = adjusted(Degree(now=25, ceiling=128), error=0.06, failures=0, most=128)
    assert degree == Degree(now=20, ceiling=23)


def test_it_creeps_up_to_the_ceiling_and_then_beyond_it() -> None:
    degree, path = Degree(now=20, ceiling=23), []
    for _ in range(4):
        degree = adjusted(degree, error=0.0, failures=0, most=128)
        path.append(degree.now)
    assert path == [23, 26, 31, 39]


def test_a_second_disturbance_at_the_ceiling_leaves_the_ceiling_there() -> None:
    assert adjusted(Degree(now=23, ceiling=23), error=1.0, failures=0, most=128).ceiling == 24


def test_failures_that_only_parallelism_caused_count_like_an_error() -> None:
    calm = adjusted(Degree(now=40, ceiling=128), error=0.0, failures=2, most=128)
    broken = adjusted(Degree(now=40, ceiling=128), error=0.0, failures=3, most=128)
    assert broken.now < 40 < calm.now


@pytest.mark.parametrize("now", [2, 3, 4])
def test_it_falls_from_small_degrees_too_where_the_published_step_stands_still(now: int) -> None:
    assert int(0.8 * (now + 1)) == now
    assert adjusted(Degree(now=now), error=1.0, failures=0, most=128).now == now - 1


@given(degrees, errors, st.integers(0, 128), st.integers(1, 64))
def test_a_degree_stays_between_one_and_the_devices_end(
    degree: Degree, error: float, failures: int, most: int
) -> None:
    found = adjusted(degree, error=error, failures=failures, most=most)
    assert found.ceiling >= 1
    if error <= PUBLISHED.tolerance and not failures:
        assert 1 <= found.now <= most


@given(degrees, st.floats(0.0501, 2))
def test_too_much_always_becomes_less(degree: Degree, error: float) -> None:
    found = adjusted(degree, error=error, failures=0, most=128)
    assert found.now < degree.now or found.now == 1


@given(degrees, st.floats(0, 0.05))
def test_what_is_precise_enough_grows_until_the_end(degree: Degree, error: float) -> None:
    assert adjusted(degree, error=error, failures=0, most=1000).now > degree.now
