"""Pools of samples: none that was seen, none that keeps the compiler busy, better ones bred."""

import math
import random
from collections.abc import Sequence

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from tests.tune.test_prior import SKETCH
from tunegate.tune.loop_nest import LoopNest
from tunegate.tune.prior import NEST_COLUMNS, Sketch
from tunegate.tune.samples import SampleFeatures, SampleSpace, ScheduleSample
from tunegate.tune.surrogate import POOL, SamplePools
from tunegate_cache.format.decisions import SamplingInstruction, check_decisions

TEMPLATE = "t"
SAMPLING = {
    TEMPLATE: (
        SamplingInstruction(
            index=3, kind="perfect-tile", n=4, max_innermost=64, extent=4096, candidates=0
        ),
        SamplingInstruction(
            index=5, kind="perfect-tile", n=4, max_innermost=64, extent=4096, candidates=0
        ),
        SamplingInstruction(
            index=7, kind="perfect-tile", n=2, max_innermost=64, extent=4096, candidates=0
        ),
        SamplingInstruction(
            index=9, kind="categorical", n=1, max_innermost=0, extent=None, candidates=4
        ),
    )
}


def pools(kind: str = "llvm") -> SamplePools:
    features = SampleFeatures(SAMPLING, {TEMPLATE: SKETCH})
    space = SampleSpace(SAMPLING, random.Random(1))
    return SamplePools(space, features, kind)


def lanes(rows: Sequence[Sequence[float]]) -> np.ndarray:
    return np.array([row[0] for row in rows])


def test_what_was_seen_is_not_drawn_again() -> None:
    first, is_small = pools().draw_pool((), ())
    again, _ = pools().draw_pool((), set(first))
    assert (is_small, again) == (False, [])


def test_what_keeps_the_compiler_busy_is_left_out() -> None:
    """A CPU's; the nest is not one that a GPU has."""
    every, _ = pools("cuda").draw_pool((), ())
    kept, _ = pools().draw_pool((), ())
    assert len(every) == POOL
    assert set(kept) < set(every)


def test_what_is_bred_scores_higher_than_what_was_drawn() -> None:
    mine = pools()
    drawn, _ = mine.draw_pool((), ())
    few = drawn[:8]
    bred = mine.breed(lanes, few, (), ())
    assert max(bred.values()) > max(bred[sample] for sample in few)


def test_what_was_seen_is_not_bred_again() -> None:
    mine = pools()
    drawn, _ = mine.draw_pool((), ())
    bred = set(mine.breed(lanes, drawn[:8], (), ()))
    again = set(pools().breed(lanes, drawn[:8], (), bred))
    assert again & bred == set(drawn[:8])


# Samples are always legal, new, and come from what is good.

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


def test_a_seed_decides_everything() -> None:
    one, other = (SampleSpace(TEMPLATES, random.Random(7)) for _ in range(2))
    assert one.pool([], 50) == other.pool([], 50)


NEST = LoopNest(((0, 0), (1, 0), (0, 1), (0, 2), (1, 1), (0, 3)))
SKETCHES = {"a": Sketch("direct", NEST), "b": Sketch("direct", None)}
A = ScheduleSample("a", ((3, (2, 3, 4, 4)), (5, (9, 3)), (8, (1,)), (9, (2,))))


def test_the_columns_are_the_template_the_decisions_and_the_volumes() -> None:
    row = SampleFeatures(TEMPLATES, SKETCHES).of(A)[NEST_COLUMNS:]
    logs = [1.0, math.log2(3), 2.0, 2.0]
    reduction = [math.log2(9), math.log2(3)]
    assert row[:9] == [0.0, *logs, *reduction, 1.0, 2.0]
    assert row[9:13] == logs  # of the spatial tiles, level by level
    assert row[13:15] == reduction
    assert row[-1] == 2.0 + math.log2(3)  # what the innermost loops hold


def test_samples_of_one_kind_have_the_same_innermost_loops() -> None:
    features = SampleFeatures(TEMPLATES, SKETCHES)
    other = ScheduleSample("a", ((3, (3, 2, 4, 4)), (5, (9, 3)), (8, (3,)), (9, (2,))))
    narrow = ScheduleSample("a", ((3, (2, 3, 8, 2)), (5, (9, 3)), (8, (1,)), (9, (2,))))
    assert features.kind(A) == features.kind(other) != features.kind(narrow)
