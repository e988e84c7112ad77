from __future__ import annotations

from collections.abc import Collection

import msgspec
import pytest

from tests.support.tuning_tasks import make_task
from tunegate.artifacts.changes import Side
from tunegate.artifacts.tasks import Skipped, TaskUse
from tunegate.tune.expected_time import nobody, skipped_tasks
from tunegate.tune.model_keys import ModelOnTarget

M, N = ("m.onnx", "cpu"), ("n.onnx", "cpu")


@pytest.mark.parametrize(
    ("uses", "behind", "reason"),
    [
        (("m head",), (), ""),
        (("m base",), (), ""),
        (("m base", "m head"), (), "shared"),
        (("m head",), (M,), "behind"),
        (("m base", "m head"), (M,), "behind"),
        (("m head", "n head"), (M,), ""),
        (("m head", "n base", "n head"), (M,), "behind"),
        (("m base", "m head", "n head"), (M,), ""),
        (("m base", "m head", "n head"), (M, N), "behind"),
    ],
)
def test_why_a_task_is_left_as_it_is(
    uses: tuple[str, ...], behind: Collection[ModelOnTarget], reason: Skipped
) -> None:
    made = tuple(use_of(text) for text in uses)
    task = msgspec.structs.replace(make_task(), uses=made)
    heads = make_task("of every head")
    compiled = msgspec.structs.replace(heads, uses=(use_of("m head"), use_of("n head")))
    assert skipped_tasks([task, compiled], behind)[task.key, "cpu"] == reason


def test_a_base_pays_for_nothing_where_its_head_is_not_compiled() -> None:
    task = make_task(sides=("base",))
    assert skipped_tasks([task], ()) == {(task.key, "cpu"): "shared"}


def use_of(text: str) -> TaskUse:
    model, side = text.split()
    sides: dict[str, Side] = {"base": "base", "head": "head"}
    return TaskUse(model=f"{model}.onnx", side=sides[side], weight=1, name="conv")


def test_nobody_is_behind_where_nothing_says_so() -> None:
    assert nobody([make_task()]) == ()
