"""Refitted tiles multiply to the extent, keep their bounds, and are the nearest there are."""

from __future__ import annotations

import math
import time
from itertools import product

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from tunegate.tune.refit import adapt, nearest_factors
from tunegate_cache.format.decisions import SamplingInstruction, check_decisions

sources = st.lists(st.integers(1, 64), min_size=1, max_size=5).map(tuple)


@pytest.mark.parametrize(
    ("extent", "source", "nearest"),
    [
        (500, (4, 4, 4, 8), (5, 4, 5, 5)),  # TVM's own repair makes (1, 1, 1, 500) of it
        (127, (4, 4, 4, 8), (127, 1, 1, 1)),
        (1024, (8, 4, 4, 4), (16, 4, 4, 4)),
        (768, (4, 4, 4, 8), (6, 4, 4, 8)),
    ],
)
def test_the_factors_stay_close_to_the_sources(
    extent: int, source: tuple[int, ...], nearest: tuple[int, ...]
) -> None:
    assert nearest_factors(extent, source, 64) == nearest


@given(st.integers(1, 100_000), sources, st.integers(1, 64))
def test_the_factors_multiply_to_the_extent(
    extent: int, source: tuple[int, ...], max_innermost: int
) -> None:
    factors = nearest_factors(extent, source, max_innermost)
    assert len(factors) == len(source)
    assert math.prod(factors) == extent
    assert all(factor >= 1 for factor in factors)


@given(st.integers(1, 100_000), sources, st.integers(1, 64))
def test_the_innermost_factor_keeps_its_bound(
    extent: int, source: tuple[int, ...], max_innermost: int
) -> None:
    assume(len(source) > 1)
    assert nearest_factors(extent, source, max_innermost)[-1] <= max_innermost


@given(sources)
def test_a_source_that_fits_is_kept(source: tuple[int, ...]) -> None:
    assert nearest_factors(math.prod(source), source, 64) == source


@given(st.integers(1, 360), st.lists(st.integers(1, 32), min_size=2, max_size=4).map(tuple))
def test_no_other_factorization_is_nearer(extent: int, source: tuple[int, ...]) -> None:
    def distance(factors: tuple[int, ...]) -> float:
        apart = sum(abs(math.log2(f / d)) for f, d in zip(factors[1:], source[1:], strict=True))
        return apart + 0.25 * max(0.0, math.log2(factors[-1] / source[-1]))

    divisors = [d for d in range(1, extent + 1) if extent % d == 0]
    inner = product(divisors, repeat=len(source) - 1)
    all_factors = [(extent // math.prod(i), *i) for i in inner if extent % math.prod(i) == 0]
    allowed = [factors for factors in all_factors if factors[-1] <= 16]
    found = nearest_factors(extent, source, 16)
    assert distance(found) <= min(map(distance, allowed)) + 1e-9


def test_an_extent_with_many_divisors_takes_no_noticeable_time() -> None:
    started = time.process_time()
    assert math.prod(nearest_factors(98_280, (3, 7, 5, 11, 13), 64)) == 98_280
    assert time.process_time() - started < 2.0


TEMPLATE = (
    SamplingInstruction(index=2, kind="perfect-tile", n=3, max_innermost=16, extent=500),
    SamplingInstruction(index=5, kind="categorical", candidates=4),
    SamplingInstruction(index=9, kind="compute-location"),
)


def test_tiles_are_refitted_and_the_rest_is_kept() -> None:
    adapted = adapt(((2, (8, 8, 8)), (5, (3,)), (9, (-1,))), TEMPLATE)
    assert adapted is not None
    assert math.prod(adapted[0][1]) == 500
    assert adapted[1:] == ((5, (3,)), (9, (-1,)))
    assert check_decisions(adapted, TEMPLATE) is None


@pytest.mark.parametrize(
    "decisions",
    [
        ((2, (8, 8, 8)), (5, (3,))),
        ((3, (8, 8, 8)), (5, (3,)), (9, (-1,))),
        ((2, (8, 8)), (5, (3,)), (9, (-1,))),
        ((2, (8, 0, 8)), (5, (3,)), (9, (-1,))),
        ((2, (8, 8, 8)), (5, (4,)), (9, (-1,))),
    ],
    ids=["one missing", "another place", "another depth", "no factor", "no such choice"],
)
def test_decisions_of_another_template_are_not_adapted(
    decisions: tuple[tuple[int, tuple[int, ...]], ...],
) -> None:
    assert adapt(decisions, TEMPLATE) is None


def test_a_partitioned_tile_is_used_only_where_it_fits() -> None:
    template = (SamplingInstruction(index=0, kind="partitioned-tile", n=2, extent=32),)
    assert adapt(((0, (4, 8)),), template) == ((0, (4, 8)),)
    assert adapt(((0, (4, 4)),), template) is None


def test_a_tile_of_unknown_extent_stays_as_it_is() -> None:
    template = (SamplingInstruction(index=0, kind="perfect-tile", n=2),)
    assert adapt(((0, (4, 8)),), template) == ((0, (4, 8)),)
