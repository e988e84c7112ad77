"""Folds share no layer and no model with those that taught."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from research.experience.judging.folds import folds
from tunegate.tune.prior import TaskExperience

TASK = st.builds(
    TaskExperience,
    name=st.just("task"),
    sketches=st.just(()),
    rows=st.just(()),
    layer=st.sampled_from("abcdefgh"),
    models=st.lists(st.sampled_from("stuvwxyz"), max_size=2).map(tuple),
)


@given(st.lists(TASK, max_size=20), st.integers(1, 8))
def test_no_layer_and_no_model_is_both_taught_and_judged(
    tasks: list[TaskExperience], count: int
) -> None:
    for fold in folds(tasks, count):
        taught = {task.layer for task in fold.taught}
        models = {model for task in fold.taught for model in task.models}
        assert taught.isdisjoint(task.layer for task in fold.left_out)
        assert all(models.isdisjoint(task.models) for task in fold.left_out)


@given(st.lists(TASK, max_size=20), st.integers(2, 8))
def test_a_task_is_judged_at_most_once(tasks: list[TaskExperience], count: int) -> None:
    judged = [task for fold in folds(tasks, count) for task in fold.left_out]
    assert len(judged) <= len(tasks)


def test_each_task_is_judged_once_where_nothing_is_shared() -> None:
    tasks = [TaskExperience(str(number), (), ()) for number in range(5)]
    found = list(folds(tasks, 8))
    assert sorted(task.name for fold in found for task in fold.left_out) == list("01234")
    assert all(len(fold.taught) == 4 for fold in found)


def test_tasks_of_one_model_teach_nothing_of_each_other() -> None:
    tasks = [TaskExperience(layer, (), (), layer=layer, models=("m",)) for layer in "ab"]
    assert not list(folds(tasks))
