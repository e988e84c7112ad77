"""A cost model from before the first trial: boosted trees on what was measured of other operators.

The measurements are in `experience/`, one file for each kind of target, and the trees are fitted to
them once in a process: nothing is loaded that could be more than numbers. What it is worth for
operators that it has not seen stands in docs/benchmarks.md.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache, cached_property
from pathlib import Path

import msgspec
import numpy as np

from tunegate.cost_model.boosted_trees import BoostedTrees
from tunegate.cost_model.experience import NEST_COLUMNS, TaskExperience, nest_columns

_FOLDER = Path(__file__).parent / "data"
_ROUNDS = 120
_PARAMETERS = {
    "max_depth": 5,
    "eta": 0.1,
    "min_child_weight": 2,
    "subsample": 0.8,
    "colsample_bytree": 0.8,
}


class Prior:
    """Expects time ratios, best / time. Fitted when it is first asked: not every run searches."""

    def __init__(self, tasks: Sequence[TaskExperience]) -> None:
        self._tasks = tasks

    def ratios(self, rows: Sequence[Sequence[float]]) -> np.ndarray:
        """Expected of samples, whose rows begin with the columns of their loop nest; one without a
        nest is as good as the mean."""
        trees, mean = self._fitted
        columns = np.array(rows, dtype=np.float32)[:, :NEST_COLUMNS]
        return np.where(np.isnan(columns).all(axis=1), mean, trees.predicted(columns))

    @cached_property
    def _fitted(self) -> tuple[BoostedTrees, float]:
        """The trees, and the mean of what they were fitted to."""
        rows = [
            nest_columns(task.sketches[number], decided)
            for task in self._tasks
            for number, _, decided in task.rows
        ]
        ratios = np.array([ratio for task in self._tasks for ratio in ratios_of(task)])
        features = np.array(rows, dtype=np.float32)
        return BoostedTrees(features, ratios, _PARAMETERS, rounds=_ROUNDS), float(np.mean(ratios))


@cache
def prior_of(kind: str) -> Prior | None:
    """The prior for a kind of target, `llvm` or `cuda`, or None where
    nothing has been measured before."""
    tasks = experience_of(kind)
    return Prior(tasks) if tasks else None


def experience_of(kind: str) -> list[TaskExperience]:
    file = _FOLDER / f"{kind}.jsonl"
    if not file.exists():
        return []
    return msgspec.json.Decoder(TaskExperience).decode_lines(file.read_bytes())


def ratios_of(task: TaskExperience) -> list[float]:
    best = min(milliseconds for _, milliseconds, _ in task.rows)
    return [best / milliseconds for _, milliseconds, _ in task.rows]
