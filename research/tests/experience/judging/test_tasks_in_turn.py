"""A run is replayed: tasks take turns, and learn of each other."""

from __future__ import annotations

import numpy as np
import pytest
from msgspec.structs import replace
from tests.tune.test_prior import gpu_experience

from research.experience.judging.tasks_in_turn import (
    WAYS,
    CorrectedAnalysis,
    by_analysis,
    replayed,
)
from tunegate.tune.prior import TaskExperience, columns_of


def opposite(task: TaskExperience) -> TaskExperience:
    """The task, whose time is what the analysis thinks of the candidate: it is always wrong."""
    shares = by_analysis(()).ratios(columns_of(task))
    rows = zip(task.rows, shares.tolist(), strict=True)
    return replace(task, rows=tuple((n, share, decided) for (n, _, decided), share in rows))


WRONG = opposite(gpu_experience())


def test_other_tasks_tell_that_the_analysis_is_wrong() -> None:
    columns = columns_of(WRONG)
    times = np.array([ms for _, ms, _ in WRONG.rows])
    alone = CorrectedAnalysis([]).ratios(columns)
    corrected = CorrectedAnalysis([WRONG]).ratios(columns)
    assert times[np.argmax(alone)] == times.max()
    assert times[np.argmax(corrected)] < times.max()


@pytest.mark.parametrize("way", WAYS)
def test_the_first_task_of_a_run_has_nobody_to_learn_from(way: str) -> None:
    """And what measures all its candidates has the best of them."""
    count = len(WRONG.rows)
    (reached,) = replayed([WRONG], count, 1, 1, {way: WAYS[way]}).values()
    (expected,) = replayed([WRONG], count, 1, 1, {"": by_analysis}).values()
    assert reached.tolist() == expected.tolist()
    (whole,) = replayed([WRONG, WRONG], 8, 2, 1, {way: WAYS[way]}).values()
    assert whole.tolist() == [[1.0], [1.0]]
