"""A network that is trained on tasks which a line through the columns ranks."""

from __future__ import annotations

import numpy as np
import pytest
from tests.tune.test_prior import experience

from research.experience.judging.measured_task import MeasuredTask, in_columns
from research.experience.network.body_model import body_bytes, body_of
from research.experience.network.few_shot_head import adapted_head
from research.experience.network.meta_training import (
    TrainedNetwork,
    body_features,
    meta_trained,
    ranking_loss,
)
from research.experience.network.network_card import scaling_of
from tunegate.tune.candidate_filter import rank_correlation

SEEN = in_columns(experience())
TASKS = [
    MeasuredTask(SEEN.columns[first:], SEEN.milliseconds[first:] * scale)
    for first, scale in ((0, 1.0), (4, 7.0), (8, 0.1))
]
SCALING = scaling_of(TASKS)


@pytest.fixture(scope="module")
def trained() -> TrainedNetwork:
    return meta_trained(TASKS, SCALING, steps=60)


def rank_of(scores: np.ndarray) -> float:
    return rank_correlation(scores.tolist(), (-SEEN.milliseconds).tolist())


def test_it_learns_what_is_there_to_learn(trained: TrainedNetwork) -> None:
    features = body_features(trained.body, SCALING.scaled(SEEN.columns))
    assert rank_of(features @ trained.head) > 0.8


def test_sixteen_measurements_turn_a_task_where_narrow_loops_are_fast(
    trained: TrainedNetwork,
) -> None:
    features = body_features(trained.body, SCALING.scaled(SEEN.columns))
    few = np.random.default_rng(0).permutation(len(features))[:16]
    turned = np.log2(SEEN.milliseconds)
    head = adapted_head(trained.head, features[few], turned[few], trained.strength)
    assert rank_of(features @ head) < rank_of(features @ trained.head) - 0.5


def test_the_exported_body_gives_the_same_numbers_in_onnx_runtime(
    trained: TrainedNetwork,
) -> None:
    columns = SCALING.scaled(SEEN.columns)
    found = body_of(body_bytes(trained.body))(columns)
    assert found == pytest.approx(body_features(trained.body, columns), abs=1e-5)


def test_equal_data_make_equal_numbers() -> None:
    one, other = (meta_trained(TASKS[:2], SCALING, steps=1) for _ in range(2))
    assert one.head.tolist() == other.head.tolist()
    assert body_bytes(one.body) == body_bytes(other.body)


def test_the_loss_is_of_wrong_pairs_by_how_far_they_are_apart() -> None:
    labels, all_rows = np.array([0.0, -1.0, -3.0]), np.ones(3)
    right = float(ranking_loss(labels * 10, labels, all_rows))
    swapped = float(ranking_loss(labels[[1, 0, 2]] * 10, labels, all_rows))
    reversed_order = float(ranking_loss(-labels * 10, labels, all_rows))
    assert 0 <= right < 0.01 < swapped < reversed_order
    assert float(ranking_loss(-labels, labels, np.array([1.0, 0.0, 0.0]))) == 0.0
