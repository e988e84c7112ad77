"""Cost models on tasks that they have not seen."""

from __future__ import annotations

import numpy as np
from msgspec.structs import replace
from tests.tune.test_prior import experience

from research.experience.judging.evaluation import (
    RANDOM,
    few_shot_regret,
    way_regrets,
)
from research.experience.judging.folds import folds
from research.experience.judging.measured_task import MeasuredTask, in_columns
from research.experience.judging.rankers import ADAPTED_TREES, TREES, Frozen, Scratch


def test_trees_lose_less_than_the_controls_on_tasks_like_those_they_know() -> None:
    tasks = [replace(experience(), name=name) for name in "abc"]
    judged = way_regrets(folds(tasks), TREES, ADAPTED_TREES)
    found = {(one.way, one.shots, one.picks): one for one in judged}
    first = {way: found[way, 0, 1].mean for way in (*TREES, RANDOM)}
    assert first["trees"] < 1.05
    assert first["trees"] < min(first["trees, times shuffled"], first[RANDOM])
    assert found["trees", 0, 1].tasks == 3
    assert {shots for _, shots, _ in found} == {0, 8, 16}
    assert found["trees, frozen", 8, 16].mean == 1.0


def test_a_task_with_fewer_measurements_than_shots_is_not_judged_in_few_shot() -> None:
    short = replace(experience(), rows=experience().rows[:10])
    found = way_regrets(folds([replace(short, name=name) for name in "ab"]), TREES, ADAPTED_TREES)
    assert {one.shots for one in found} == {0, 8}


def test_what_was_measured_at_random_counts_among_the_picks() -> None:
    columns = in_columns(experience()).columns[:16]
    task = MeasuredTask(columns, np.arange(1.0, 17.0))
    assert few_shot_regret(Scratch(), task, 8) == 1.0
    assert few_shot_regret(Frozen([experience()]), task, 8) == 1.0
