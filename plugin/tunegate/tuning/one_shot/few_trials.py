"""The end of a search that may have few trials.

One-Shot Tuner (CC 2022) measures one batch of what its model expects most of, and stops. What was
picked is alike, so that ranks within a batch say little: only those that clearly contradict the
model are a reason to search on.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from tunegate.tuning.candidate_filter import rank_correlation

MIN_COMPARED = 4
"""Fewer candidates say nothing of ranks."""
CONTRADICTED = -0.3
"""The rank correlation below which predictions and measurements disagree."""


class Prediction(NamedTuple):
    """The expected score of a candidate (larger is better), and the milliseconds it took."""

    expected: float
    milliseconds: float


def is_enough(trials: int, limit: int, predictions: Sequence[Prediction]) -> bool:
    """Returns whether a search of `limit` trials ends after so many."""
    return trials >= limit and not disagrees(predictions)


def disagrees(predictions: Sequence[Prediction]) -> bool:
    if len(predictions) < MIN_COMPARED:
        return False
    expected = [each.expected for each in predictions]
    speeds = [-each.milliseconds for each in predictions]
    return rank_correlation(expected, speeds) < CONTRADICTED
