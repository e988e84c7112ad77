"""A cost model from before the first trial: boosted trees on what was measured of other operators.

The measurements are in `data/`, one packed file for each kind of target, and the trees are fitted
to them once in a process: nothing is loaded that could be more than numbers. What it is worth for
operators that it has not seen stands in docs/benchmarks.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache, cached_property
from pathlib import Path
from typing import NamedTuple

import msgspec
import numpy as np

from tunegate.cost_model.boosted_trees import BoostedTrees
from tunegate.cost_model.experience import NEST_COLUMNS, TaskExperience, nest_columns
from tunegate_cache.format.decompression import decompress

_FOLDER = Path(__file__).parent / "data"
_ROUNDS = 300
_PARAMETERS = {
    "grow_policy": "lossguide",
    "max_depth": 0,
    "max_leaves": 64,
    "eta": 0.05,
    "min_child_weight": 4,
    "subsample": 0.8,
    "colsample_bytree": 0.8,
}
_FAR = 3.0
"""The distance that a column may lie outside of the fitted data: 8x, in logarithms to 2."""


class _Fitted(NamedTuple):
    """The trees, the mean of what they were fitted to, and the range of each column there."""

    trees: BoostedTrees
    mean: float
    least: np.ndarray
    most: np.ndarray


class Prior:
    """Expects time ratios, best / time. Fitted when it is first asked: not every run searches."""

    def __init__(self, tasks: Sequence[TaskExperience]) -> None:
        self._tasks = tasks

    def ratios(self, rows: Sequence[Sequence[float]]) -> np.ndarray:
        """Expected of samples, whose rows begin with the columns of their loop nest; one without a
        nest is as good as the mean."""
        columns = _nest_columns_of(rows)
        expected = self._fitted.trees.predicted(columns)
        return np.where(np.isnan(columns).all(axis=1), self._fitted.mean, expected)

    def knows(self, rows: Sequence[Sequence[float]]) -> np.ndarray:
        """Returns a mask (n,) bool: whether each sample has a loop nest that is not far from the
        fitted data."""
        columns = _nest_columns_of(rows)
        low, high = self._fitted.least - _FAR, self._fitted.most + _FAR
        inside = (columns >= low) & (columns <= high)
        return np.asarray(inside.all(axis=1))

    @cached_property
    def _fitted(self) -> _Fitted:
        rows = [
            nest_columns(task.sketches[number], decided)
            for task in self._tasks
            for number, _, decided in task.rows
        ]
        ratios = np.array([ratio for task in self._tasks for ratio in ratios_of(task)])
        features = np.array(rows, dtype=np.float32)
        return _Fitted(
            trees=BoostedTrees(features, ratios, _PARAMETERS, rounds=_ROUNDS),
            mean=float(np.mean(ratios)),
            least=np.nanmin(features, axis=0),
            most=np.nanmax(features, axis=0),
        )


def _nest_columns_of(rows: Sequence[Sequence[float]]) -> np.ndarray:
    return np.array(rows, dtype=np.float32)[:, :NEST_COLUMNS]


@cache
def prior_of(kind: str) -> Prior | None:
    """The prior for a kind of target, `llvm` or `cuda`, or None where
    nothing has been measured before."""
    tasks = experience_of(kind)
    return Prior(tasks) if tasks else None


def experience_of(kind: str) -> list[TaskExperience]:
    file = _FOLDER / f"{kind}.jsonl.zst"
    if not file.exists():
        return []
    return msgspec.json.Decoder(TaskExperience).decode_lines(decompress(file.read_bytes()))


def ratios_of(task: TaskExperience) -> list[float]:
    best = min(milliseconds for _, milliseconds, _ in task.rows)
    return [best / milliseconds for _, milliseconds, _ in task.rows]
