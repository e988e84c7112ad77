from __future__ import annotations

import msgspec
import pytest

from tests.support.tuning_tasks import make_task
from tunegate.artifacts.changes import Side
from tunegate.artifacts.tasks import TaskUse, TuningTask
from tunegate.tune.expected_time import is_shared, paying_sides


def used_by(*uses: tuple[str, Side]) -> TuningTask:
    made = [TaskUse(model=model, side=side, weight=1, name="conv") for model, side in uses]
    return msgspec.structs.replace(make_task(), uses=tuple(made))


@pytest.mark.parametrize("side", ["base", "head"])
def test_the_side_that_alone_has_a_task_pays_for_it(side: Side) -> None:
    assert paying_sides(used_by(("m", side))) == (("m", side),)


def test_what_both_sides_of_a_model_have_is_shared() -> None:
    assert is_shared(used_by(("m", "base"), ("m", "head")))


@pytest.mark.parametrize(("base", "head", "paying"), [(3, 2, "base"), (2, 3, "head")])
def test_the_side_that_runs_a_layer_more_often_pays(base: int, head: int, paying: Side) -> None:
    """One of three equal layers was changed: its new form is tuned, so the old one must be."""
    uses = [
        TaskUse(model="m", side="base", weight=base, name="conv"),
        TaskUse(model="m", side="head", weight=head, name="conv"),
    ]
    task = msgspec.structs.replace(make_task(), uses=tuple(uses))
    assert paying_sides(task) == (("m", paying),)


def test_functions_of_one_side_that_are_the_same_task_are_counted_together() -> None:
    assert is_shared(used_by(("m", "base"), ("m", "base"), ("m", "head"), ("m", "head")))
    assert paying_sides(used_by(("m", "base"), ("m", "base"), ("m", "head"))) == (("m", "base"),)


def test_a_base_of_one_model_and_a_head_of_another_share_nothing() -> None:
    task = used_by(("m", "base"), ("n", "head"))
    assert paying_sides(task) == (("m", "base"), ("n", "head"))
    assert not is_shared(task)


def test_a_new_model_pays_for_what_another_one_shares() -> None:
    assert paying_sides(used_by(("m", "base"), ("m", "head"), ("n", "head"))) == (("n", "head"),)
