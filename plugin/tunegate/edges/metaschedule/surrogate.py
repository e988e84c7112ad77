"""A cheap score for drafts: boosted trees on what one task has measured so far."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tunegate.tuning.candidate_filter import LEAST_CORRELATION, LEAST_EVIDENCE, rank_correlation

_ROUNDS = 40
_FOLDS = 4
_PARAMETERS = {
    "max_depth": 5,
    "eta": 0.2,
    "min_child_weight": 0.5,
    "subsample": 0.8,
    "colsample_bytree": 0.7,
    "objective": "reg:squarederror",
    "nthread": 1,
    "seed": 1,
    "verbosity": 0,
}


class Surrogate:
    """Learns time ratios, best / time, so that it is most exact where it matters; what failed
    counts as infinitely slow: to learn that a region fails is to learn something."""

    def __init__(self) -> None:
        self._rows: list[list[float]] = []
        self._milliseconds: list[float | None] = []
        self.evidence = 0.0

    def add(self, row: list[float], milliseconds: float | None) -> None:
        """None for a candidate that did not build, run or compute right."""
        self._rows.append(row)
        self._milliseconds.append(milliseconds)

    def scores(self, rows: Sequence[Sequence[float]]) -> list[float] | None:
        """Of drafts; None until there is evidence that they mean anything. `evidence` is the rank
        correlation of predictions with measurements that they were not fitted to."""
        times = [t for t in self._milliseconds if t is not None]
        if len(self._rows) < LEAST_EVIDENCE or not times:
            return None
        best = min(times)
        labels = np.array([0.0 if t is None else best / t for t in self._milliseconds])
        features = np.array(self._rows, dtype=np.float32)
        self.evidence = _evidence(features, labels)
        if self.evidence < LEAST_CORRELATION:
            return None
        return [float(p) for p in _predicted(features, labels, np.array(rows, dtype=np.float32))]


def _evidence(features: np.ndarray, labels: np.ndarray) -> float:
    fold = np.arange(len(labels)) % _FOLDS
    predicted = np.zeros(len(labels))
    for number in range(_FOLDS):
        held = fold == number
        predicted[held] = _predicted(features[~held], labels[~held], features[held])
    return rank_correlation(predicted.tolist(), labels.tolist())


def _predicted(features: np.ndarray, labels: np.ndarray, rows: np.ndarray) -> np.ndarray:
    # Imported when there is something to fit: it is a sixth of what a search takes to start.
    import xgboost  # noqa: PLC0415

    fitted = xgboost.train(_PARAMETERS, xgboost.DMatrix(features, labels), _ROUNDS)
    return np.asarray(fitted.predict(xgboost.DMatrix(rows)))
