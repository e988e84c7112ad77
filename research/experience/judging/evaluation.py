"""Judges cost models on layers and models that they have not seen: their first picks, and the picks
after a few measurements, at equal trials (One-Shot Tuner, MetaTune)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

import msgspec
import numpy as np

from research.experience.judging.folds import Fold
from research.experience.judging.measured_task import MeasuredTask, in_columns
from research.experience.judging.rankers import Ranker, Teach
from research.experience.judging.regret import random_regret, regret, spread
from tunegate.tune.prior import TaskExperience

PICKS = (1, 8, 32)
"""The numbers of candidates of which the best is compared with the best of all."""
SHOTS = (8, 16)
"""The numbers of random measurements of a task, after which each way picks as many as a batch."""
BATCH = 8
RANDOM = "random"
_Place = tuple[str, int, int]
"""A way, its shots and its picks."""


class WayRegret(msgspec.Struct, frozen=True):
    """The regret of `way`, over `tasks` tasks, with the best of `picks` candidates of which the
    first `shots` are measured at random and told it: the median, its 95% interval, and the
    geometric mean."""

    way: str
    shots: int
    picks: int
    tasks: int
    median: float
    low: float
    high: float
    mean: float


def way_regrets(
    parts: Iterable[Fold], first: Mapping[str, Teach], adapted: Mapping[str, Teach]
) -> tuple[WayRegret, ...]:
    """Judges what ranks without a measurement, beside random picks, and what adapts to a few. Each
    fold teaches a way once, also where it is judged in both."""
    found: dict[_Place, list[float]] = {}
    for fold in parts:
        taught = {teach: teach(fold.taught) for teach in {*first.values(), *adapted.values()}}
        at_first = {way: taught[teach] for way, teach in first.items()}
        later = {way: taught[teach] for way, teach in adapted.items()}
        for place, lost in _regrets(at_first, later, fold.left_out):
            found.setdefault(place, []).append(lost)
    return tuple(
        WayRegret(*place, len(regrets), *spread(np.array(regrets)))
        for place, regrets in found.items()
    )


def _regrets(
    first: Mapping[str, Ranker], adapted: Mapping[str, Ranker], tasks: Sequence[TaskExperience]
) -> Iterator[tuple[_Place, float]]:
    for task in map(in_columns, tasks):
        for picks in PICKS:
            yield (RANDOM, 0, picks), random_regret(task.milliseconds, picks)
        for way, ranker in first.items():
            scores = ranker.scores(task.columns)
            yield from (((way, 0, n), regret(scores, task.milliseconds, n)) for n in PICKS)
        enough = [shots for shots in SHOTS if shots < len(task.milliseconds)]
        for way, ranker in adapted.items():
            yield from (((way, n, n + BATCH), few_shot_regret(ranker, task, n)) for n in enough)


def few_shot_regret(ranker: Ranker, task: MeasuredTask, shots: int) -> float:
    """The best of `shots` random candidates and of the batch picked after them, over the best of
    all. The random ones are the same for every way."""
    order = np.random.default_rng(0).permutation(len(task.milliseconds))
    told, rest = order[:shots], order[shots:]
    knowing = ranker.adapt(task.columns[told], task.milliseconds[told])
    scores = np.full(len(order), np.inf)
    scores[rest] = knowing.scores(task.columns[rest])
    return regret(scores, task.milliseconds, shots + BATCH)
