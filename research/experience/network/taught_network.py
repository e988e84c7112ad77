"""A network trained on tasks, as the two files that are kept of it and as ways to rank."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from functools import lru_cache
from typing import NamedTuple

from research.experience.judging.folds import layer_of
from research.experience.judging.measured_task import in_columns
from research.experience.judging.rankers import Ranker, Teach
from research.experience.network.body_model import body_bytes, body_of
from research.experience.network.meta_training import STEPS, meta_trained, trained_with
from research.experience.network.network_card import NetworkCard, data_sha256, scaling_of
from research.experience.network.network_ranker import FrozenNetwork, NetworkRanker
from tunegate.tune.prior import TaskExperience


class TaughtNetwork(NamedTuple):
    """`body` is an ONNX model."""

    body: bytes
    card: NetworkCard


@lru_cache(maxsize=2)
def taught_network(tasks: tuple[TaskExperience, ...], steps: int = STEPS) -> TaughtNetwork:
    """The same for the same tasks; trained once where two ways to rank have the same body."""
    seen = [in_columns(task) for task in tasks]
    scaling = scaling_of(seen)
    trained = meta_trained(seen, scaling, steps)
    body = body_bytes(trained.body)
    card = NetworkCard(
        body_sha256=hashlib.sha256(body).hexdigest(),
        scaling=scaling,
        head=tuple(trained.head.tolist()),
        strength=trained.strength,
        data_sha256=data_sha256(tasks),
        tasks=len(tasks),
        measurements=sum(len(task.rows) for task in tasks),
        layers=tuple(sorted({layer_of(task) for task in tasks})),
        models=tuple(sorted({model for task in tasks for model in task.models})),
        trained_with=trained_with(),
    )
    return TaughtNetwork(body, card)


def _train(tasks: Sequence[TaskExperience]) -> Ranker:
    found = taught_network(tuple(tasks))
    return NetworkRanker(body_of(found.body), found.card)


def _freeze(tasks: Sequence[TaskExperience]) -> Ranker:
    found = taught_network(tuple(tasks))
    return FrozenNetwork(body_of(found.body), found.card)


def _without_training(tasks: Sequence[TaskExperience]) -> Ranker:
    """A body that has learned nothing, with the same head."""
    found = taught_network(tuple(tasks), 0)
    return NetworkRanker(body_of(found.body), found.card)


NETWORK: dict[str, Teach] = {"network": _train}
ADAPTED_NETWORK: dict[str, Teach] = {
    "network, meta-trained": _train,
    "network, frozen": _freeze,
    "network, from scratch": _without_training,
}
