"""The worth of a team's own tasks to the trees, on layers that are left out."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace
from tests.tune.test_prior import decided, experience

from research.experience.judging.prior_trial import LEAST_TASKS, PriorTrial, prior_trial
from tunegate.tune.prior import TaskExperience


def contrary(name: str) -> TaskExperience:
    """Narrow loops are the fast ones: the opposite of `experience`."""
    rows = tuple(
        (0, lanes + 0.01 * rows, decided(lanes, rows))
        for lanes in (1, 2, 4, 8, 16)
        for rows in (1, 2, 3, 4, 5, 7)
    )
    return replace(experience(), name=name, rows=rows)


def test_tasks_that_say_what_ships_does_not_know_are_better() -> None:
    found = prior_trial([experience()], [contrary(str(n)) for n in range(LEAST_TASKS)])
    assert found is not None
    assert found.tasks == LEAST_TASKS
    assert found.own < found.shipped
    assert found.ratio == pytest.approx(found.own / found.shipped)
    assert found.low <= found.ratio <= found.high < 1
    assert found.is_better


def test_times_that_mean_nothing_are_not_better() -> None:
    rng = np.random.default_rng(1)
    mixed = [
        replace(task, rows=tuple((n, float(rng.uniform(1, 9)), d) for n, _, d in task.rows))
        for task in (contrary(str(number)) for number in range(LEAST_TASKS))
    ]
    found = prior_trial([experience()], mixed)
    assert found is not None
    assert not found.is_better


def test_tasks_of_one_model_cannot_be_judged() -> None:
    tasks = [replace(contrary(name), models=("m",)) for name in "ab"]
    assert prior_trial([experience()], tasks) is None


def test_a_few_tasks_show_nothing() -> None:
    found = prior_trial([experience()], [contrary(str(n)) for n in range(LEAST_TASKS - 1)])
    assert found is not None
    assert found.high < 1
    assert not found.is_better


@given(st.integers(0, 40), st.floats(0.1, 3))
def test_better_is_only_what_lies_below_one_on_enough_tasks(tasks: int, high: float) -> None:
    trial = PriorTrial(tasks=tasks, shipped=1.0, own=1.0, ratio=high, low=0.0, high=high)
    assert trial.is_better == (tasks >= LEAST_TASKS and np.less(high, 1))
