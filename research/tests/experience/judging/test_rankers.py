"""Ways to rank candidates, from what was taught and from the task itself."""

from __future__ import annotations

import numpy as np
from tests.tune.test_prior import experience, gpu_experience

from research.experience.judging.measured_task import in_columns
from research.experience.judging.rankers import (
    ByAnalysis,
    Corrected,
    Frozen,
    Scratch,
    mistaught,
    with_shuffled_times,
)
from tunegate.tune.candidate_filter import rank_correlation
from tunegate.tune.prior import NEST_COLUMNS

TASK = in_columns(experience())


def rank_of(scores: np.ndarray) -> float:
    return rank_correlation(scores.tolist(), (-TASK.milliseconds).tolist())


def test_trees_rank_what_they_were_taught() -> None:
    ranker = Frozen([experience()])
    assert rank_of(ranker.scores(TASK.columns)) > 0.9
    assert ranker.adapt(TASK.columns, TASK.milliseconds) is ranker


def test_what_was_taught_wrong_is_corrected_by_the_task() -> None:
    wrong = [with_shuffled_times(experience())]
    corrected = Corrected(wrong).adapt(TASK.columns, TASK.milliseconds)
    assert rank_of(corrected.scores(TASK.columns)) > 0.9
    assert corrected.adapt(TASK.columns, TASK.milliseconds) is corrected


def test_the_task_alone_teaches_who_knew_nothing() -> None:
    scratch = Scratch()
    assert abs(rank_of(scratch.scores(TASK.columns))) < 0.5
    told = scratch.adapt(TASK.columns, TASK.milliseconds)
    assert rank_of(told.scores(TASK.columns)) > 0.9
    few = scratch.adapt(TASK.columns[:2], TASK.milliseconds[:2])
    assert np.array_equal(few.scores(TASK.columns), scratch.scores(TASK.columns))


def test_the_analysis_of_a_gpus_tiles_needs_no_measurement() -> None:
    columns = in_columns(gpu_experience()).columns
    assert np.array_equal(ByAnalysis().scores(columns), columns[:, NEST_COLUMNS])


def test_exchanged_times_are_the_same_times_and_teach_nothing() -> None:
    given, mixed = experience(), with_shuffled_times(experience())
    assert sorted(ms for _, ms, _ in given.rows) == sorted(ms for _, ms, _ in mixed.rows)
    assert [decided for *_, decided in given.rows] == [decided for *_, decided in mixed.rows]
    assert abs(rank_of(mistaught([given]).scores(TASK.columns))) < 0.6
