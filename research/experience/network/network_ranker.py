"""A trained network as a way to rank candidates."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from research.experience.judging.rankers import Ranker
from research.experience.network.few_shot_head import adapted_head
from research.experience.network.network_card import NetworkCard

NetworkBody = Callable[[np.ndarray], np.ndarray]
"""A function that makes features of scaled columns, a row each."""


class NetworkRanker:
    """The body stays as it was trained; the head is moved by the measurements of a task."""

    def __init__(
        self, body: NetworkBody, card: NetworkCard, head: np.ndarray | None = None
    ) -> None:
        self._body, self._card = body, card
        self._head = np.array(card.head) if head is None else head

    def scores(self, columns: np.ndarray) -> np.ndarray:
        return np.asarray(self._features(columns) @ self._head)

    def adapt(self, columns: np.ndarray, milliseconds: np.ndarray) -> Ranker:
        features, labels = self._features(columns), -np.log2(milliseconds)
        head = adapted_head(self._head, features, labels, self._card.strength)
        return NetworkRanker(self._body, self._card, head)

    def _features(self, columns: np.ndarray) -> np.ndarray:
        return self._body(self._card.scaling.scaled(columns))


class FrozenNetwork(NetworkRanker):
    """The same, whatever the task's times are."""

    def adapt(self, columns: np.ndarray, milliseconds: np.ndarray) -> Ranker:
        return self
