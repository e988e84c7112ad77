from __future__ import annotations

from collections import Counter

from hypothesis import given, settings
from hypothesis import strategies as st

from study_tests.design.synthetic import settings_of
from tunegate_study.design.fraction import cells_needed, chosen_cells, untold_pairs
from tunegate_study.design.model_matrix import ModelMatrix, pairs_of, rank
from tunegate_study.studies import Axis


def axes_of(levels: list[int]) -> list[Axis]:
    return [
        Axis(name=f"a{at}", levels=tuple(f"{at}{n}" for n in range(count)))
        for at, count in enumerate(levels)
    ]


AXES = st.lists(st.integers(2, 4), min_size=2, max_size=4).map(axes_of)


@settings(max_examples=12, deadline=None)
@given(axes=AXES, spare=st.integers(0, 6), data=st.data())
def test_a_fraction_tells_all_main_effects_within_its_cap(
    axes: list[Axis], spare: int, data: st.DataObject
) -> None:
    """Also where some cells cannot be."""
    every = settings_of(axes)
    holes = data.draw(st.sets(st.integers(0, len(every) - 1), max_size=len(every) // 4))
    possible = [each for at, each in enumerate(every) if at not in holes]
    most = cells_needed(axes, possible) + spare
    cells = chosen_cells(axes, possible, most)
    assert len(cells) == min(most, len(possible))
    assert all(each in possible for each in cells)
    assert len({tuple(each.items()) for each in cells}) == len(cells)
    assert rank(ModelMatrix(axes).rows(cells)) == cells_needed(axes, possible)


def test_levels_of_a_half_are_balanced_and_all_pairs_can_be_told() -> None:
    axes = axes_of([2] * 5)
    cells = chosen_cells(axes, settings_of(axes), 16)
    for axis in axes:
        assert set(Counter(each[axis.name] for each in cells).values()) == {8}
    assert untold_pairs(axes, cells) == ()
    rows = ModelMatrix(axes, pairs_of(axes)).rows(cells)
    assert rank(rows) == rows.shape[1] == 16


def test_all_cells_are_taken_where_there_is_room() -> None:
    axes = axes_of([2, 3])
    assert chosen_cells(axes, settings_of(axes), 6) == tuple(settings_of(axes))
    assert untold_pairs(axes, settings_of(axes)) == ()


def test_a_pair_with_an_empty_corner_is_named() -> None:
    axes = axes_of([2, 2, 2])
    without = [each for each in settings_of(axes) if (each["a0"], each["a1"]) != ("01", "11")]
    assert untold_pairs(axes, without) == (("a0", "a1"),)


def test_the_same_seed_draws_the_same_cells() -> None:
    axes = axes_of([4, 4, 3])
    first = chosen_cells(axes, settings_of(axes), 14)
    assert chosen_cells(axes, settings_of(axes), 14) == first


def test_a_large_factorial_is_drawn_from() -> None:
    axes = axes_of([4, 4, 4, 4, 3])
    possible = settings_of(axes)
    cells = chosen_cells(axes, possible, 30)
    assert rank(ModelMatrix(axes).rows(cells)) == cells_needed(axes, possible) == 15
