"""Ways to rank candidates of a task that nobody has tuned: what is taught, what is learned from a
few measurements of the task itself, and controls that know nothing."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol

import numpy as np
from msgspec.structs import replace

from tunegate.tune.gpu_analysis import Analysis
from tunegate.tune.prior import NEST_COLUMNS, Prior, TaskExperience
from tunegate.tune.surrogate import Surrogate


class Ranker(Protocol):
    """Scores candidates by the columns of their loop nests; more is better."""

    def scores(self, columns: np.ndarray) -> np.ndarray: ...

    def adapt(self, columns: np.ndarray, milliseconds: np.ndarray) -> Ranker:
        """The same, after these measurements of the task."""
        ...


Teach = Callable[[Sequence[TaskExperience]], Ranker]


class Frozen:
    """Boosted trees on what was measured of other tasks, whatever this one's times are."""

    def __init__(self, taught: Sequence[TaskExperience]) -> None:
        self.prior = Prior(taught)

    def scores(self, columns: np.ndarray) -> np.ndarray:
        return self.prior.ratios(columns.tolist())

    def adapt(self, columns: np.ndarray, milliseconds: np.ndarray) -> Ranker:
        return self


class ByAnalysis:
    """Looks at a GPU's tiles and at nothing that was measured: what a search there begins with."""

    def __init__(self, taught: Sequence[TaskExperience] = ()) -> None:
        """Looks at nothing that is taught."""

    def scores(self, columns: np.ndarray) -> np.ndarray:
        return Analysis(NEST_COLUMNS).ratios(columns.tolist())

    def adapt(self, columns: np.ndarray, milliseconds: np.ndarray) -> Ranker:
        return self


class Corrected(Frozen):
    """The same trees, corrected by trees on the task's own times: what a search does."""

    def adapt(self, columns: np.ndarray, milliseconds: np.ndarray) -> Ranker:
        return _FromTask(Surrogate(self.prior), columns, milliseconds)


class Scratch:
    """Knows nothing but what is measured of the task."""

    def __init__(self, taught: Sequence[TaskExperience] = ()) -> None:
        """Looks at nothing that is taught."""

    def scores(self, columns: np.ndarray) -> np.ndarray:
        return np.random.default_rng(0).random(len(columns))

    def adapt(self, columns: np.ndarray, milliseconds: np.ndarray) -> Ranker:
        return _FromTask(Surrogate(), columns, milliseconds)


class _FromTask:
    def __init__(self, surrogate: Surrogate, columns: np.ndarray, milliseconds: np.ndarray) -> None:
        for row, time in zip(columns.tolist(), milliseconds.tolist(), strict=True):
            surrogate.add(row, time)
        self._score = surrogate.score()

    def scores(self, columns: np.ndarray) -> np.ndarray:
        """Random where the task's times say nothing."""
        if self._score is None:
            return Scratch().scores(columns)
        return self._score(columns.tolist())

    def adapt(self, columns: np.ndarray, milliseconds: np.ndarray) -> Ranker:
        return self


def mistaught(taught: Sequence[TaskExperience]) -> Ranker:
    """The control: trees on the same candidates with their times exchanged, which mean nothing."""
    return Frozen([with_shuffled_times(task) for task in taught])


def with_shuffled_times(task: TaskExperience) -> TaskExperience:
    """The task with its times exchanged."""
    times = np.random.default_rng(1).permutation([ms for _, ms, _ in task.rows]).tolist()
    rows = zip(task.rows, times, strict=True)
    return replace(task, rows=tuple((n, ms, d) for (n, _, d), ms in rows))


TREES: dict[str, Teach] = {"trees": Frozen, "trees, times shuffled": mistaught}
ANALYSIS: dict[str, Teach] = {"analysis of tiles": ByAnalysis}
ADAPTED_TREES: dict[str, Teach] = {
    "trees, corrected": Corrected,
    "trees, frozen": Frozen,
    "trees, from scratch": Scratch,
}
