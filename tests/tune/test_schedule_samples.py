"""Samples are always legal, new, and come from what is good."""

from __future__ import annotations

import math
import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tunegate.tune.samples import SELDOM, SampleSpace, ScheduleSample, primes
from tunegate_cache.format.decisions import SamplingInstruction, check_decisions

Templates = dict[str, tuple[SamplingInstruction, ...]]


def tile(index: int, extent: int, n: int = 4, innermost: int = 64) -> SamplingInstruction:
    return SamplingInstruction(
        index=index, kind="perfect-tile", n=n, max_innermost=innermost, extent=extent
    )


TEMPLATES: Templates = {
    "a": (
        tile(3, 96),
        tile(5, 27, n=2),
        SamplingInstruction(index=8, kind="categorical", candidates=4),
        SamplingInstruction(index=9, kind="compute-location", extent=5),
    ),
    "b": (tile(2, 128), tile(4, 1)),
}

extents = st.integers(1, 5000)
templates = st.builds(
    lambda one, two, n: {
        "a": (tile(1, one, n=n), tile(4, two, n=2)),
        "b": TEMPLATES["a"],
        "nothing to decide": (),
    },
    extents,
    extents,
    st.integers(1, 5),
)


def products(sample: ScheduleSample, space: Templates) -> list[tuple[int, int | None]]:
    return [
        (math.prod(values), sampling.extent)
        for (_, values), sampling in zip(sample.decisions, space[sample.template], strict=True)
        if sampling.kind == "perfect-tile"
    ]


@given(templates, st.integers(0, 2**32))
def test_every_sample_is_one_that_the_template_allows(space: Templates, seed: int) -> None:
    samples = SampleSpace(space, random.Random(seed))
    first = samples.pool([], 24)
    later = samples.pool(first[:6], 24)
    for sample in (*first, *later):
        has_bound_that_fits = all(
            s.n > 1 for s in space[sample.template] if s.kind.endswith("tile")
        )
        reason = check_decisions(sample.decisions, space[sample.template])
        assert reason is None or not has_bound_that_fits
        assert all(product == extent for product, extent in products(sample, space))


def test_a_pool_holds_each_sample_once_and_none_that_is_known() -> None:
    samples = SampleSpace(TEMPLATES, random.Random(1))
    good = samples.pool([], 10)
    pool = samples.pool(good, 300)
    assert len(pool) == len(set(pool)) == 300
    assert not set(pool) & set(good)


def test_a_small_space_gives_what_it_has() -> None:
    samples = SampleSpace({"a": (tile(1, 3, n=2),)}, random.Random(1))
    assert sorted(d.decisions for d in samples.pool([], 100)) == [((1, (1, 3)),), ((1, (3, 1)),)]


def test_most_of_a_later_pool_looks_like_what_is_good() -> None:
    samples = SampleSpace(TEMPLATES, random.Random(1))
    good = next(sample for sample in samples.pool([], 20) if sample.template == "a")
    pool = samples.pool([good], 200)

    def in_common(sample: ScheduleSample) -> int:
        return sum(
            one == other for one, other in zip(sample.decisions, good.decisions, strict=False)
        )

    close = [d for d in pool if d.template == good.template and in_common(d) >= 2]
    assert len(close) > 40
    assert any(d.template != good.template for d in pool)


def test_a_seed_decides_everything() -> None:
    one, other = (SampleSpace(TEMPLATES, random.Random(7)) for _ in range(2))
    assert one.pool([], 50) == other.pool([], 50)


@given(st.integers(1, 10**6))
def test_primes_multiply_to_the_number(number: int) -> None:
    assert math.prod(primes(number)) == number
    assert all(all(p % d for d in range(2, math.isqrt(p) + 1)) for p in primes(number))


def test_a_template_that_is_seldom_good_is_drawn_less_often() -> None:
    first = next(iter(TEMPLATES))
    samples = SampleSpace(TEMPLATES, random.Random(1), seldom=[first])
    drawn = [samples._random().template for _ in range(2000)]
    others = len(TEMPLATES) - 1
    expected = SELDOM / (SELDOM + others)
    assert drawn.count(first) / len(drawn) == pytest.approx(expected, abs=0.03)
