"""Measures what the other tasks of a run tell of one: a GPU's run, replayed on measured candidates.

Tasks take turns, and each turn measures a batch, as in a search. A way to rank gets what the other
tasks have measured until then; from its second batch on a task corrects that by its own times.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

import numpy as np
from msgspec.structs import replace

from research.experience.judging.evaluation import BATCH
from research.experience.judging.measured_task import MeasuredTask, in_columns
from research.experience.judging.rankers import with_shuffled_times
from tunegate.tune.gpu_analysis import Analysis
from tunegate.tune.prior import (
    NEST_COLUMNS,
    BoostedTrees,
    Expectation,
    Prior,
    TaskExperience,
    columns_of,
    ratios_of,
)
from tunegate.tune.surrogate import Surrogate, correction_weight

Way = Callable[[Sequence[TaskExperience]], Expectation]
"""Makes what ranks a task's candidates of what the other tasks have measured."""
_ROUNDS = 40
_PARAMETERS = {
    "max_depth": 5,
    "eta": 0.2,
    "min_child_weight": 0.5,
    "subsample": 0.8,
    "colsample_bytree": 0.7,
}
"""Those of the trees that a search fits to a task's own times."""


def by_analysis(_: Sequence[TaskExperience]) -> Expectation:
    """Ranks as a search on a GPU does."""
    return Analysis(NEST_COLUMNS)


def by_trees(others: Sequence[TaskExperience]) -> Expectation:
    """Trees on the other tasks in place of the analysis, whose share is one of their features."""
    return Prior(others) if others else by_analysis(others)


class CorrectedAnalysis:
    """The analysis, corrected by how far it was off for the other tasks: so a task's own times
    correct a prior in a search."""

    def __init__(self, others: Sequence[TaskExperience]) -> None:
        labels = [ratio for task in others for ratio in ratios_of(task)]
        self._weight = correction_weight(len(labels))
        if labels:
            of_tasks = [np.array(columns_of(task), dtype=np.float32) for task in others]
            expected = np.concatenate([_shares(columns) for columns in of_tasks])
            self._trees = BoostedTrees(
                np.concatenate(of_tasks),
                np.array(labels),
                _PARAMETERS,
                rounds=_ROUNDS,
                baseline=expected,
            )

    def ratios(self, rows: Sequence[Sequence[float]]) -> np.ndarray:
        columns = np.array(rows, dtype=np.float32)
        expected = _shares(columns)
        if not self._weight:
            return expected
        corrected = expected + self._weight * (self._trees.predict(columns, expected) - expected)
        return np.asarray(corrected)


def _shares(columns: np.ndarray) -> np.ndarray:
    """Returns the shares of the peak, of candidates of one task, over the largest of them: as a
    label is the best time over a candidate's."""
    shares = Analysis(NEST_COLUMNS).ratios(columns.tolist())
    return np.asarray(shares / shares.max())


def with_times_exchanged(way: Way) -> Way:
    """The control: the way learns from the same candidates with their times exchanged."""
    return lambda others: way([with_shuffled_times(task) for task in others])


WAYS: dict[str, Way] = {
    "analysis": by_analysis,
    "analysis, corrected by the other tasks": CorrectedAnalysis,
    "the same, times exchanged": with_times_exchanged(CorrectedAnalysis),
    "trees on the other tasks": by_trees,
}


class _Draw(NamedTuple):
    """The candidates of each task that may be measured, and the order of the tasks."""

    pools: list[np.ndarray]
    order: np.ndarray


def replayed(
    tasks: Sequence[TaskExperience], pool: int, draws: int, batches: int, ways: Mapping[str, Way]
) -> dict[str, np.ndarray]:
    """Returns what each way reaches, (tasks, batches): the best time of `pool` random candidates
    over the best that was measured of them after each batch, means over draws. All ways have the
    same draws."""
    seen = [in_columns(task) for task in tasks]
    reached = {way: np.zeros((len(tasks), batches)) for way in ways}
    rng = np.random.default_rng(1)
    for _ in range(draws):
        draw = _drawn(seen, pool, rng)
        for name, way in ways.items():
            run = _Run(tasks, seen, way)
            reached[name] += np.stack([run.batch(draw) for _ in range(batches)], axis=1) / draws
    return reached


def _drawn(seen: Sequence[MeasuredTask], pool: int, rng: np.random.Generator) -> _Draw:
    counts = [len(task.milliseconds) for task in seen]
    pools = [rng.choice(count, min(pool, count), replace=False) for count in counts]
    return _Draw(pools, rng.permutation(len(seen)))


class _Run:
    def __init__(
        self, tasks: Sequence[TaskExperience], seen: Sequence[MeasuredTask], way: Way
    ) -> None:
        self._tasks, self._seen, self._way = tasks, seen, way
        self._measured: list[list[int]] = [[] for _ in tasks]

    def batch(self, draw: _Draw) -> np.ndarray:
        """Measures a batch of each task. Returns the best time of the pool over the best so far."""
        reached = np.zeros(len(self._tasks))
        for at in draw.order:
            measured, pool, times = (
                self._measured[at],
                draw.pools[at],
                self._seen[at].milliseconds,
            )
            unmeasured = np.setdiff1d(pool, measured)
            scores = _scores(self._way(self._others(at)), self._seen[at], measured, unmeasured)
            measured += unmeasured[np.argsort(-scores, kind="stable")[:BATCH]].tolist()
            reached[at] = times[pool].min() / times[measured].min()
        return reached

    def _others(self, at: int) -> list[TaskExperience]:
        return [
            replace(task, rows=tuple(task.rows[row] for row in rows))
            for number, (task, rows) in enumerate(zip(self._tasks, self._measured, strict=True))
            if number != at and rows
        ]


def _scores(
    prior: Expectation, task: MeasuredTask, measured: Sequence[int], unmeasured: np.ndarray
) -> np.ndarray:
    surrogate = Surrogate(prior)
    for row in measured:
        surrogate.add(task.columns[row].tolist(), float(task.milliseconds[row]))
    score = surrogate.score()
    if score is None:  # its own times contradict it, and tell nothing: a search picks by chance
        return np.random.default_rng(0).random(len(unmeasured))
    return score(task.columns[unmeasured].tolist())
