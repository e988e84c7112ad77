"""Tries whether a team's own measurements make the trees better on layers that they have not
seen."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import msgspec
import numpy as np

from research.experience.judging.evaluation import BATCH
from research.experience.judging.folds import folds, layer_of, unseen
from research.experience.judging.measured_task import in_columns
from research.experience.judging.regret import regret
from tunegate.tune.prior import Prior, TaskExperience

LEAST_TASKS = 8
"""The tasks below which nothing is shown."""
_BOOTSTRAPS = 1000


class PriorTrial(msgspec.Struct, frozen=True, kw_only=True):
    """The geometric means, over `tasks` tasks that were left out, of the best time in a batch of
    first picks over the best of all: of the trees that ship, and of those that know the own tasks
    too. `ratio` is the second over the first, `low` and `high` its 95% interval by bootstrap."""

    tasks: int
    shipped: float
    own: float
    ratio: float
    low: float
    high: float

    @property
    def is_better(self) -> bool:
        return self.tasks >= LEAST_TASKS and self.high < 1


class _Lost(NamedTuple):
    shipped: float
    own: float


def prior_trial(
    shipped: Sequence[TaskExperience], own: Sequence[TaskExperience]
) -> PriorTrial | None:
    """Judges both, each on the own tasks that are left out; None where none can be, as all share a
    layer or a model."""
    lost = np.log(np.array(list(_losses(shipped, own))).reshape(-1, 2))
    if not len(lost):
        return None
    apart = lost[:, 1] - lost[:, 0]
    drawn = np.random.default_rng(0).choice(apart, (_BOOTSTRAPS, len(apart))).mean(axis=1)
    low, high = np.exp(np.percentile(drawn, (2.5, 97.5)))
    means = np.exp(lost.mean(axis=0))
    return PriorTrial(
        tasks=len(lost),
        shipped=float(means[0]),
        own=float(means[1]),
        ratio=float(np.exp(apart.mean())),
        low=float(low),
        high=float(high),
    )


def _losses(shipped: Sequence[TaskExperience], own: Sequence[TaskExperience]) -> Iterator[_Lost]:
    ships = Prior(shipped)
    for fold in folds(own):
        layers = {layer_of(task) for task in fold.left_out}
        known = unseen(shipped, layers, (model for task in fold.left_out for model in task.models))
        before = ships if len(known) == len(shipped) else Prior(known)  # fitted once
        after = Prior((*known, *fold.taught))
        for task in map(in_columns, fold.left_out):
            rows = task.columns.tolist()
            found = (regret(p.ratios(rows), task.milliseconds, BATCH) for p in (before, after))
            yield _Lost(*found)
