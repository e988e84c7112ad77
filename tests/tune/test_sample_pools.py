"""Pools of samples: none that was seen, none that keeps the compiler busy, better ones bred."""

from __future__ import annotations

import random
from collections.abc import Sequence

import numpy as np

from tests.tune.test_experience import SKETCH
from tunegate.tune.sample_features import SampleFeatures
from tunegate.tune.samples import SampleSpace
from tunegate.tune.surrogate import POOL, SamplePools
from tunegate_cache.format.decisions import SamplingInstruction

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


def pools(*, drops_bloated: bool = True) -> SamplePools:
    features = SampleFeatures(SAMPLING, {TEMPLATE: SKETCH})
    space = SampleSpace(SAMPLING, random.Random(1))
    return SamplePools(space, features, drops_bloated=drops_bloated)


def lanes(rows: Sequence[Sequence[float]]) -> np.ndarray:
    return np.array([row[0] for row in rows])


def test_what_was_seen_is_not_drawn_again() -> None:
    first, is_small = pools().drawn((), ())
    again, _ = pools().drawn((), set(first))
    assert (is_small, again) == (False, [])


def test_what_keeps_the_compiler_busy_is_left_out() -> None:
    every, _ = pools(drops_bloated=False).drawn((), ())
    kept, _ = pools().drawn((), ())
    assert len(every) == POOL
    assert set(kept) < set(every)


def test_what_is_bred_scores_higher_than_what_was_drawn() -> None:
    mine = pools()
    drawn, _ = mine.drawn((), ())
    few = drawn[:8]
    bred = mine.bred(lanes, few, (), ())
    assert max(bred.values()) > max(bred[sample] for sample in few)


def test_what_was_seen_is_not_bred_again() -> None:
    mine = pools()
    drawn, _ = mine.drawn((), ())
    bred = set(mine.bred(lanes, drawn[:8], (), ()))
    again = set(pools().bred(lanes, drawn[:8], (), bred))
    assert again & bred == set(drawn[:8])
