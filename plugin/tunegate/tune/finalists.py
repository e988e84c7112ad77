"""The number of a task's candidates that are measured again before one of them is confirmed.

DOPpler (IEEE TPDS 2023) ranks the best hundredth again, alone, whatever the first measurement said.
Here it is those that the error of a quick measurement may have put behind, as many as the trials of
the task are worth; and once more those that this has not told apart, so that a slow moment of the
machine is nobody's.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

from tunegate.tune.candidate_filter import rank_correlation
from tunegate_cache.format.records import WINNERS_CURSE

MIN_FINALISTS, MAX_FINALISTS = 2, 8
TIE_RATIO = WINNERS_CURSE
"""Times the best: what luck may have put behind it."""
_TRIALS_FOR_ONE = 32


def finalist_count(times_ms: Sequence[float], trials: int) -> int:
    """The number of finalists among `times_ms`, which has the best first."""
    worth = math.ceil(trials / _TRIALS_FOR_ONE)
    return min(len(times_ms), max(MIN_FINALISTS, min(MAX_FINALISTS, _close(times_ms), worth)))


def tie_count(times_ms: Sequence[float]) -> int:
    """Returns the number of finalists that are still tied, of their times, the best first."""
    close = _close(times_ms)
    return close if close > 1 else 0


def _close(times_ms: Sequence[float]) -> int:
    return sum(each <= TIE_RATIO * times_ms[0] for each in times_ms)


# The end of a search that may have few trials. One-Shot Tuner (CC 2022) measures one batch of what
# its model expects most of, and stops. What was picked is alike, so that ranks within a batch say
# little: only those that clearly contradict the model are a reason to search on.

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
