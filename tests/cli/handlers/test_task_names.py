from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from tests.support.tuning_records import make_key, make_shape
from tunegate.artifacts.tasks import TaskUse, TuningTask
from tunegate.cli.handlers.cache_why_miss import task_names, tasks_named


def task(workload: str, model: str, name: str) -> TuningTask:
    return TuningTask(
        key=make_key(workload),
        shape=make_shape(),
        target="cpu",
        operator="conv2d",
        dtype="float32",
        flops=1.0,
        uses=(TaskUse(model=model, side="head", weight=1, name=name),),
    )


TASKS = (
    task("a", "m.onnx", "conv1, relu1"),
    task("b", "m.onnx", "transpose"),
    task("c", "m.onnx", "transpose"),
    task("d", "n.onnx", "conv2"),
    task("e", "m.onnx", "conv2"),
)


def test_a_name_is_as_long_as_it_has_to_be() -> None:
    names = task_names(TASKS)
    assert names[0] == "conv1, relu1"
    assert names[1] == f"m.onnx:transpose:{TASKS[1].key.workload[:12]}"
    assert names[3:] == ("n.onnx:conv2", "m.onnx:conv2")


def test_a_layer_a_digest_and_a_part_find_their_tasks() -> None:
    assert tasks_named(TASKS, "relu1") == (0,)
    assert tasks_named(TASKS, TASKS[2].key.workload[:20]) == (2,)
    assert tasks_named(TASKS, "transpose") == (1, 2)
    assert tasks_named(TASKS, "n.onnx") == (3,)
    assert tasks_named(TASKS, "pool") == ()


@given(
    st.lists(
        st.tuples(st.text("ab", min_size=1), st.sampled_from("mn"), st.sampled_from("xyz")),
        unique_by=lambda each: each[0],
    )
)
def test_a_name_that_is_shown_finds_its_task_alone(rows: list[tuple[str, str, str]]) -> None:
    tasks = [task(*row) for row in rows]
    names = task_names(tasks)
    assert len(set(names)) == len(names)
    for at, name in enumerate(names):
        assert tasks_named(tasks, name) == (at,)
