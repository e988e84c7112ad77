"""What is known before the first trial, and what it is worth for operators that it has not seen."""

from __future__ import annotations

import math
import random
import statistics
from collections.abc import Sequence

import msgspec
import pytest

from tests.tune.test_experience import SKETCH, decided, experience
from tunegate.tune.candidate_filter import rank_correlation
from tunegate.tune.expected_time import PACES
from tunegate.tune.improvement import INFORMED
from tunegate.tune.prior import (
    NEST_COLUMNS,
    Prior,
    TaskExperience,
    experience_of,
    nest_columns,
    prior_of,
    ratios_of,
)

FEW = 8


def test_ratios_are_those_to_the_best_of_the_task() -> None:
    ratios = ratios_of(TaskExperience("", (SKETCH,), ((0, 4.0, ()), (0, 2.0, ()))))
    assert ratios == [0.5, 1.0]


def test_it_expects_of_others_what_it_has_seen() -> None:
    prior = Prior([experience()])
    wide, narrow = prior.ratios([nest_columns(SKETCH, decided(lanes, rows=6)) for lanes in (16, 1)])
    assert wide > narrow + 0.3


def test_what_follows_the_columns_of_the_nest_is_not_looked_at() -> None:
    prior = Prior([experience()])
    row = nest_columns(SKETCH, decided(8))
    assert prior.ratios([row]) == prior.ratios([[*row, 5.0, math.nan]])


def test_a_sample_without_a_loop_nest_is_as_good_as_the_mean() -> None:
    (expected,) = Prior([experience()]).ratios([[math.nan] * NEST_COLUMNS])
    assert expected == pytest.approx(statistics.mean(ratios_of(experience())))


def test_it_knows_what_lies_near_what_it_was_fitted_to() -> None:
    prior = Prior([experience()])
    near = nest_columns(SKETCH, decided(16, rows=6))
    far = [each + 16.0 for each in near]
    assert prior.knows([near, far, [math.nan] * NEST_COLUMNS]).tolist() == [True, False, False]


def test_the_scheduler_knows_for_which_targets_there_is_one() -> None:
    assert {kind for kind, pace in PACES.items() if pace == INFORMED} == {
        kind for kind in PACES if prior_of(kind) is not None
    }


def test_nothing_is_known_of_gpus() -> None:
    assert prior_of("cuda") is None


def test_every_operator_that_is_shipped_is_whole() -> None:
    for task in experience_of("llvm"):
        assert len(task.rows) >= FEW
        for number, milliseconds, values in task.rows:
            assert milliseconds > 0
            assert len(nest_columns(task.sketches[number], values)) == NEST_COLUMNS


def test_of_operators_that_it_was_not_fitted_to_it_knows_which_samples_are_good() -> None:
    """Whole operators are left out, a quarter of them at a time; never
    rows of one that is fitted to."""
    tasks = experience_of("llvm")
    correlations, regrets = held_out(tasks, tasks)
    assert statistics.mean(correlations) > 0.5
    assert statistics.median(regrets) < 1.1


def test_times_that_mean_nothing_teach_it_nothing() -> None:
    tasks = experience_of("llvm")
    correlations, _ = held_out([shuffled(task) for task in tasks], tasks)
    assert abs(statistics.mean(correlations)) < 0.2


def held_out(
    taught: Sequence[TaskExperience], tasks: Sequence[TaskExperience]
) -> tuple[list[float], list[float]]:
    """Rank correlations, and how much slower than the best of all the best of its first few is."""
    correlations, regrets = [], []
    for fold in range(4):
        prior = Prior([task for number, task in enumerate(taught) if number % 4 != fold])
        for task in tasks[fold::4]:
            expected = prior.ratios([nest_columns(task.sketches[n], v) for n, _, v in task.rows])
            ratios = ratios_of(task)
            correlations.append(rank_correlation(expected.tolist(), ratios))
            first = sorted(range(len(ratios)), key=lambda row: -expected[row])[:FEW]
            regrets.append(1.0 / max(ratios[row] for row in first))
    return correlations, regrets


def shuffled(task: TaskExperience) -> TaskExperience:
    """The same times, of other candidates."""
    times = random.Random(1).sample([ms for _, ms, _ in task.rows], len(task.rows))
    pairs = zip(task.rows, times, strict=True)
    return msgspec.structs.replace(task, rows=tuple((n, ms, v) for (n, _, v), ms in pairs))
