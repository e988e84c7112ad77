"""A cheap score for samples: boosted trees on one task's measurements, on top of the prior."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from heapq import nlargest
from typing import NamedTuple

import numpy as np

from tunegate.tune.candidate_filter import MIN_CORRELATION, MIN_EVIDENCE, rank_correlation
from tunegate.tune.prior import BoostedTrees, Expectation
from tunegate.tune.samples import SampleFeatures, SampleSpace, ScheduleSample

_ENOUGH_TO_DOUBT = 2 * MIN_EVIDENCE
_ROUNDS = 40
_FOLDS = 4
_SURROGATE_PARAMETERS = {
    "max_depth": 5,
    "eta": 0.2,
    "min_child_weight": 0.5,
    "subsample": 0.8,
    "colsample_bytree": 0.7,
}


Score = Callable[[Sequence[Sequence[float]]], np.ndarray]
"""Maps rows of features to scores, larger is better."""


_HALF_TRUSTED = 16
"""With so many measurements a correction counts half."""


class _LabelledRows(NamedTuple):
    """Rows, (n, columns) float32, their labels (n,), and predictions made without these, (n,)."""

    features: np.ndarray
    labels: np.ndarray
    baseline: np.ndarray

    def only(self, rows: np.ndarray) -> _LabelledRows:
        return _LabelledRows(*(part[rows] for part in self))


class Surrogate:
    """Learns time ratios, best / time, which makes it most exact near the best. Failures count as
    infinitely slow, so failing regions are learned, too.

    Before a task has evidence of its own the prior decides, then the trees that correct it. A
    correction by n measurements has the weight n / (n + 16), shrunk towards the prior's prediction
    (James and Stein, 1961). With enough evidence against the prior, the trees go without it if they
    predict better so. Where the trees know nothing the prior goes on, unless measurements
    contradict it.
    """

    def __init__(self, prior: Expectation | None = None) -> None:
        self.prior = prior
        self._rows: list[list[float]] = []
        self._milliseconds: list[float | None] = []
        self.evidence = 0.0

    def add(self, row: list[float], milliseconds: float | None) -> None:
        """Adds a row and its time, None for a candidate that failed to build, run or compute
        right."""
        self._rows.append(row)
        self._milliseconds.append(milliseconds)

    def score(self) -> Score | None:
        """Returns a score that ranks samples, None until there is evidence that it does. `evidence`
        is the rank correlation of predictions with measurements that they were not fitted to."""
        times = [t for t in self._milliseconds if t is not None]
        if len(self._rows) < MIN_EVIDENCE or not times:
            return None if self.prior is None else self.prior.ratios
        best = min(times)
        labels = np.array([0.0 if t is None else best / t for t in self._milliseconds])
        features = np.array(self._rows, dtype=np.float32)
        trials = []
        for expect in self._expectations(float(np.mean(labels))):
            data = _LabelledRows(features, labels, expect(self._rows))
            trials.append((_evidence(data), data, expect))
        self.evidence, data, expect = max(trials, key=lambda trial: trial[0])
        if self.evidence < MIN_CORRELATION:
            prior = self.prior
            return prior.ratios if prior and self._is_credible(prior, labels) else None
        correct = _correction(data)
        return lambda rows: correct(np.array(rows, dtype=np.float32), expect(rows))

    def _is_credible(self, prior: Expectation, labels: np.ndarray) -> bool:
        """Returns whether the prior may go on where the task's own trees know nothing. Its picks
        are alike, so a few of them tell little about its ranks; more of them include some that it
        would have rejected."""
        if len(self._rows) < _ENOUGH_TO_DOUBT:
            return True
        ratios = prior.ratios(self._rows).tolist()
        return rank_correlation(ratios, labels.tolist()) > 0

    def _expectations(self, average: float) -> Iterator[Score]:
        """Yields the predictions that the trees may correct: the prior's, and the task's average.
        With few measurements chance alone makes the average look better half of the time."""
        if self.prior is not None:
            yield self.prior.ratios
        if self.prior is None or len(self._rows) >= _ENOUGH_TO_DOUBT:
            yield lambda rows: np.full(len(rows), average)


def _evidence(rows: _LabelledRows) -> float:
    fold = np.arange(len(rows.labels)) % _FOLDS
    scores = np.zeros(len(rows.labels))
    for number in range(_FOLDS):
        mask = fold == number
        correct = _correction(rows.only(~mask))
        scores[mask] = correct(rows.features[mask], rows.baseline[mask])
    return rank_correlation(scores.tolist(), rows.labels.tolist())


def _correction(rows: _LabelledRows) -> Callable[[np.ndarray, np.ndarray], np.ndarray]:
    """Returns a function from features and predictions to corrected predictions."""
    trees = BoostedTrees(
        rows.features,
        rows.labels,
        _SURROGATE_PARAMETERS,
        rounds=_ROUNDS,
        baseline=rows.baseline,
    )
    weight = correction_weight(len(rows.labels))

    def correct(features: np.ndarray, baseline: np.ndarray) -> np.ndarray:
        return np.asarray(baseline + weight * (trees.predict(features, baseline) - baseline))

    return correct


def correction_weight(measurements: int) -> float:
    """Returns the weight of a correction by so many measurements."""
    return measurements / (measurements + _HALF_TRUSTED)


# Pools of samples: those worth compiling, and others bred from the best scores.

POOL = 512
"""The number of samples that a batch is chosen from. Fewer samples cost more in quality than they
save in time (docs/benchmarks, "How many samples a batch is chosen from")."""
GOOD = 12
"""The number of schedules that are changed and crossed."""
_MORE_DRAWS = 3
"""Pools drawn besides for a GPU: of a product's random tiles one in fifty fits its limits."""
_GENERATIONS = 2
"""The number of pools bred from the best of the pool before."""


class SamplePools:
    """Makes pools of `samples` for a `kind` of target, without those that are not worth
    compiling."""

    def __init__(self, samples: SampleSpace, features: SampleFeatures, kind: str) -> None:
        self._samples, self._features, self._kind = samples, features, kind

    def draw_pool(
        self, good: Sequence[ScheduleSample], past: Collection[ScheduleSample]
    ) -> tuple[list[ScheduleSample], bool]:
        """Returns a pool without seen samples, and whether the space is exhausted."""
        pool = self._samples.pool(good, POOL)
        worthwhile = dict.fromkeys(self._worth_compiling(pool, past))
        for _ in range(_MORE_DRAWS if self._kind == "cuda" else 0):
            if len(pool) < POOL or len(worthwhile) >= POOL:
                break
            pool = self._samples.pool(good, POOL)
            worthwhile |= dict.fromkeys(self._worth_compiling(pool, past))
        return list(worthwhile), len(pool) < POOL

    def breed(
        self,
        score: Score,
        samples: Sequence[ScheduleSample],
        good: Sequence[ScheduleSample],
        past: Collection[ScheduleSample],
    ) -> dict[ScheduleSample, float]:
        """Returns the scores of these samples, and of others bred from the best-scored ones as if
        those had been measured."""
        scores = self._scores(score, samples)
        for _ in range(_GENERATIONS):
            parents = [*good, *nlargest(GOOD, scores, key=scores.__getitem__)]
            pool, _ = self.draw_pool(parents, past)
            scores |= self._scores(score, [sample for sample in pool if sample not in scores])
        return scores

    def _worth_compiling(
        self, pool: Sequence[ScheduleSample], past: Collection[ScheduleSample]
    ) -> list[ScheduleSample]:
        new = (sample for sample in pool if sample not in past)
        return [each for each in new if not self._features.is_hopeless(each, self._kind)]

    def _scores(
        self, score: Score, samples: Sequence[ScheduleSample]
    ) -> dict[ScheduleSample, float]:
        if not samples:
            return {}
        scores = score([self._features.of(sample) for sample in samples])
        return dict(zip(samples, map(float, scores), strict=True))
