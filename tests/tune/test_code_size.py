"""A copy that is unrolled into hundreds of statements is told before anything is lowered."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from tests.tune.test_experience import SKETCH
from tunegate.tune.loop_nest import Decided, LoopNest
from tunegate.tune.sample_features import MAX_STATEMENTS, copied_statements, is_bloated

INNER = SKETCH.nest or LoopNest(())
"""It copies what the two innermost levels of both axes write."""
OUTER = replace(INNER, copied_at=0)
SLOW: Decided = ((8, 2, 8, 1), (2, 16, 1, 32), (128, 2), (3,))
"""Took 5.7 s to compile with the copy outside, and 0.05 s with it inside, or with none."""


def test_the_statements_are_the_vectors_of_the_tile_that_is_copied() -> None:
    assert copied_statements(INNER, SLOW) == 8
    assert copied_statements(OUTER, SLOW) == 256


def test_what_took_a_hundred_times_as_long_to_compile_is_rejected() -> None:
    assert is_bloated(OUTER, SLOW)
    assert not is_bloated(INNER, SLOW)
    assert not is_bloated(replace(OUTER, copied_at=None), SLOW)


def test_a_copy_that_stays_a_loop_is_not_code() -> None:
    less = (*SLOW[:3], (2,))
    assert copied_statements(OUTER, less) == 0
    assert copied_statements(replace(OUTER, unrolled_by=None), SLOW) == 0


def test_a_sketch_without_a_loop_nest_is_never_rejected() -> None:
    assert not is_bloated(None, ((1024,),))


tiles = st.tuples(*[st.sampled_from((1, 2, 3, 4, 8, 16))] * 4)


@given(tiles, tiles, st.integers(0, 3), st.sampled_from((0, 1, None)))
def test_no_copy_has_more_statements_than_are_unrolled(
    rows: tuple[int, ...], columns: tuple[int, ...], unroll: int, copied_at: int | None
) -> None:
    nest = replace(INNER, copied_at=copied_at)
    found: Decided = (rows, columns, (4, 8), (unroll,))
    assert copied_statements(nest, found) <= nest.unrolled_steps(found)
    assert is_bloated(nest, found) == (copied_statements(nest, found) > MAX_STATEMENTS)
