"""Distance between shapes, and the choice of neighbours."""

from __future__ import annotations

import math

from hypothesis import given
from hypothesis import strategies as st

from tunegate_cache.format.nearest import NEIGHBOURS, distance, nearest

EXTENTS = st.lists(st.integers(2, 10**6), min_size=1, max_size=6)


@given(EXTENTS)
def test_a_shape_is_at_no_distance_from_itself(extents: list[int]) -> None:
    assert distance(extents, extents) == 0


@given(
    st.integers(1, 5).flatmap(
        lambda n: st.tuples(*[st.lists(st.integers(2, 9999), min_size=n, max_size=n)] * 3)
    )
)
def test_the_distance_is_symmetric_and_no_detour_is_shorter(
    shapes: tuple[list[int], list[int], list[int]],
) -> None:
    a, b, c = shapes
    assert math.isclose(distance(a, b), distance(b, a))
    assert distance(a, c) <= distance(a, b) + distance(b, c) + 1e-9


def test_shapes_of_another_rank_are_no_neighbours() -> None:
    assert nearest((64,), [("x", (64, 64))]) == []


@given(st.lists(EXTENTS, max_size=30))
def test_the_nearest_come_first_and_not_too_many(shapes: list[list[int]]) -> None:
    found = nearest((64, 64), [(str(i), s) for i, s in enumerate(shapes)])
    assert len(found) <= NEIGHBOURS
    assert found == sorted(found)


@given(st.lists(EXTENTS, max_size=30), st.integers(2, 9))
def test_no_shape_left_out_is_nearer_than_one_that_was_chosen(
    shapes: list[list[int]], extent: int
) -> None:
    ours = (extent, 64)
    named = {str(index): shape for index, shape in enumerate(shapes)}
    found = nearest(ours, named.items())
    chosen = {name for _, name in found}
    left = [distance(ours, shape) for name, shape in named.items() if name not in chosen]
    if found and left:
        assert max(away for away, _ in found) <= min(left)


def test_a_factor_of_two_counts_the_same_up_and_down_and_anywhere() -> None:
    assert distance((64, 1000), (128, 1000)) == distance((64, 1000), (64, 500)) == 1.0
