"""Decisions against a template: what fits, and every way not to."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tunegate_cache.format.decisions import SamplingInstruction, check_decisions
from tunegate_cache.format.nearest import NEIGHBOURS, distance, nearest_neighbours
from tunegate_cache.format.records import Decision

TEMPLATE = (
    SamplingInstruction(index=2, kind="perfect-tile", n=4, max_innermost=64, extent=1024),
    SamplingInstruction(index=5, kind="partitioned-tile", n=2),
    SamplingInstruction(index=9, kind="categorical", candidates=4),
    SamplingInstruction(index=11, kind="compute-location"),
)
GOOD: tuple[Decision, ...] = ((2, (1, 4, 16, 16)), (5, (3, 7)), (9, (3,)), (11, (-2,)))


def with_decision(position: int, decision: Decision) -> tuple[Decision, ...]:
    return (*GOOD[:position], decision, *GOOD[position + 1 :])


def test_decisions_inside_every_range_fit() -> None:
    assert check_decisions(GOOD, TEMPLATE) is None


@pytest.mark.parametrize("missing", range(4))
def test_every_sampling_instruction_must_have_a_decision(missing: int) -> None:
    without = GOOD[:missing] + GOOD[missing + 1 :]
    assert "other instructions" in (check_decisions(without, TEMPLATE) or "")


@pytest.mark.parametrize(
    "decisions",
    [
        (*GOOD, (13, (1,))),
        with_decision(0, (100_000_000, (1, 4, 16, 16))),
        with_decision(0, (-3, (1, 4, 16, 16))),
        (GOOD[1], GOOD[0], *GOOD[2:]),
        (GOOD[0], *GOOD),
        (),
    ],
)
def test_a_decision_for_anything_else_does_not_fit(decisions: tuple[Decision, ...]) -> None:
    assert "other instructions" in (check_decisions(decisions, TEMPLATE) or "")


@pytest.mark.parametrize(
    ("decision", "reason"),
    [
        ((2, (1, 4, 16)), "instruction 2: 3 factors instead of 4"),
        ((2, (1, 4, 16, 16, 1)), "instruction 2: 5 factors instead of 4"),
        ((2, (1, 0, 16, 16)), "instruction 2: a factor outside 1 to 1024"),
        ((2, (1, -4, 16, 16)), "instruction 2: a factor outside 1 to 1024"),
        ((2, (2048, 1, 1, 1)), "instruction 2: a factor outside 1 to 1024"),
        ((2, (1, 1, 8, 128)), "instruction 2: innermost factor 128 above 64"),
    ],
)
def test_tile_factors_are_counted_positive_and_bounded(decision: Decision, reason: str) -> None:
    assert check_decisions(with_decision(0, decision), TEMPLATE) == reason


def test_a_factor_is_bounded_where_the_extent_is_not_known() -> None:
    assert "outside 1 to" in (check_decisions(with_decision(1, (5, (2**31, 1))), TEMPLATE) or "")


@pytest.mark.parametrize("choice", [(-1,), (4,), (), (0, 0)])
def test_a_choice_must_be_one_of_the_candidates(choice: tuple[int, ...]) -> None:
    assert "instruction 9" in (check_decisions(with_decision(2, (9, choice)), TEMPLATE) or "")


@pytest.mark.parametrize("location", [(-3,), (64,), (), (1, 2)])
def test_a_location_is_inline_root_or_a_loop(location: tuple[int, ...]) -> None:
    assert "instruction 11" in (check_decisions(with_decision(3, (11, location)), TEMPLATE) or "")


def test_more_decisions_than_any_template_has_are_refused_at_once() -> None:
    many = tuple((index, (1,)) for index in range(257))
    assert check_decisions(many, TEMPLATE) == "257 decisions"


@given(
    st.lists(
        st.tuples(st.integers(-5, 20), st.lists(st.integers(-5, 2**40), max_size=6).map(tuple)),
        max_size=6,
    )
)
def test_what_fits_is_in_range_whatever_comes(decisions: list[Decision]) -> None:
    if check_decisions(decisions, TEMPLATE) is not None:
        return
    tile, split, choice, location = (values for _, values in decisions)
    assert all(1 <= factor <= 1024 for factor in tile)
    assert all(1 <= factor < 2**31 for factor in split)
    assert 0 <= choice[0] < 4
    assert -2 <= location[0] < 64


# Distance between shapes, and the choice of neighbours.

EXTENTS = st.lists(st.integers(2, 10**6), min_size=1, max_size=6)


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


@given(st.lists(EXTENTS, max_size=30))
def test_the_nearest_come_first_and_not_too_many(shapes: list[list[int]]) -> None:
    found = nearest_neighbours((64, 64), [(str(i), s) for i, s in enumerate(shapes)])
    assert len(found) <= NEIGHBOURS
    assert found == sorted(found)


@given(st.lists(EXTENTS, max_size=30), st.integers(2, 9))
def test_no_shape_left_out_is_nearer_than_any_chosen(shapes: list[list[int]], extent: int) -> None:
    ours = (extent, 64)
    named = {str(index): shape for index, shape in enumerate(shapes)}
    found = nearest_neighbours(ours, named.items())
    chosen = {name for _, name in found}
    left = [distance(ours, shape) for name, shape in named.items() if name not in chosen]
    if found and left:
        assert max(away for away, _ in found) <= min(left)
