"""A network as a way to rank."""

from __future__ import annotations

import numpy as np
from tests.tune.test_prior import experience

from research.experience.judging.measured_task import in_columns
from research.experience.network.network_card import WIDTH
from research.experience.network.network_ranker import FrozenNetwork, NetworkRanker
from research.tests.experience.network.test_network_card import CARD
from tunegate.tune.candidate_filter import rank_correlation

TASK = in_columns(experience())


def first_columns(scaled: np.ndarray) -> np.ndarray:
    """A body that lets the columns through."""
    return np.pad(scaled, ((0, 0), (0, WIDTH - scaled.shape[1])))


def rank_of(scores: np.ndarray) -> float:
    return rank_correlation(scores.tolist(), (-TASK.milliseconds).tolist())


def test_the_measurements_of_a_task_move_the_head_and_not_what_was_before() -> None:
    ranker = NetworkRanker(first_columns, CARD)
    before = ranker.scores(TASK.columns)
    adapted = ranker.adapt(TASK.columns[::2], TASK.milliseconds[::2])
    assert rank_of(adapted.scores(TASK.columns)) > 0.9
    assert np.array_equal(ranker.scores(TASK.columns), before)


def test_a_frozen_one_learns_nothing() -> None:
    ranker = FrozenNetwork(first_columns, CARD)
    assert ranker.adapt(TASK.columns, TASK.milliseconds) is ranker
