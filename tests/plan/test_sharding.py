"""Balanced shards."""

from __future__ import annotations

from itertools import product

from hypothesis import given
from hypothesis import strategies as st

from tunegate.plan.allocation import balanced

loads = st.lists(st.floats(0, 1000), max_size=30)


@given(loads, st.integers(1, 8))
def test_every_load_is_in_exactly_one_bin(sizes: list[float], bins: int) -> None:
    groups = balanced(sizes, bins)
    assert len(groups) == bins
    assert sorted(index for group in groups for index in group) == list(range(len(sizes)))


@given(st.lists(st.integers(1, 20), min_size=1, max_size=7), st.integers(1, 3))
def test_the_fullest_bin_is_within_four_thirds_of_the_best(sizes: list[int], bins: int) -> None:
    fullest = max(sum(sizes[i] for i in group) for group in balanced(sizes, bins))
    best = min(
        max(
            sum(s for s, chosen in zip(sizes, where, strict=True) if chosen == b)
            for b in range(bins)
        )
        for where in product(range(bins), repeat=len(sizes))
    )
    assert fullest <= (4 / 3 - 1 / (3 * bins)) * best + 1e-9


def test_the_biggest_go_first() -> None:
    assert balanced([1, 1, 4, 2, 4, 2], 2) == ((0, 2, 3), (1, 4, 5))
