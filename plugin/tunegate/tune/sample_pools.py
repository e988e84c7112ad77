"""Pools of samples: those worth compiling, and more bred from the best scores."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from heapq import nlargest

from tunegate.tune.sample_features import SampleFeatures
from tunegate.tune.samples import SampleSpace, ScheduleSample
from tunegate.tune.surrogate import Score

POOL = 512
"""The number of samples that a batch is chosen from, small or large: two candidates of
fewer samples are worse by more than finding them costs (docs/benchmarks, "How many
samples a batch is chosen from")."""
GOOD = 12
"""The number of schedules that are changed and crossed."""
_GENERATIONS = 2
"""The number of pools that are made from the best of the pool before."""


class SamplePools:
    """Makes pools of `samples`. With `drops_bloated` what keeps a CPU's compiler busy is left
    out."""

    def __init__(
        self, samples: SampleSpace, features: SampleFeatures, *, drops_bloated: bool
    ) -> None:
        self._samples, self._features = samples, features
        self._drops_bloated = drops_bloated

    def drawn(
        self, good: Sequence[ScheduleSample], seen: Collection[ScheduleSample]
    ) -> tuple[list[ScheduleSample], bool]:
        """Returns a pool without those that were seen, and whether the space has no more."""
        pool = self._samples.pool(good, POOL)
        return self._worth_compiling(pool, seen), len(pool) < POOL

    def bred(
        self,
        score: Score,
        samples: Sequence[ScheduleSample],
        good: Sequence[ScheduleSample],
        seen: Collection[ScheduleSample],
    ) -> dict[ScheduleSample, float]:
        """The scores of these samples, and of more that are made from those with the best scores
        as if they had been measured."""
        scores = self._scores(score, samples)
        for _ in range(_GENERATIONS):
            parents = [*good, *nlargest(GOOD, scores, key=scores.__getitem__)]
            pool, _ = self.drawn(parents, seen)
            scores |= self._scores(score, [sample for sample in pool if sample not in scores])
        return scores

    def _worth_compiling(
        self, pool: Sequence[ScheduleSample], seen: Collection[ScheduleSample]
    ) -> list[ScheduleSample]:
        new = (sample for sample in pool if sample not in seen)
        return [s for s in new if not (self._drops_bloated and self._features.is_bloated(s))]

    def _scores(
        self, score: Score, samples: Sequence[ScheduleSample]
    ) -> dict[ScheduleSample, float]:
        if not samples:
            return {}
        found = score([self._features.of(sample) for sample in samples])
        return dict(zip(samples, map(float, found), strict=True))
