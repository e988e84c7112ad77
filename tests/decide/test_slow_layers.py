from __future__ import annotations

from typing import Literal

import msgspec
import pytest

from tests.decide.test_advice import CUT, next_steps, planned, slower
from tests.support import report_parts as parts
from tests.support.models.squeezenet import TASKS
from tests.support.outcome_parts import outcome
from tests.support.tuning_tasks import make_task
from tunegate.artifacts.measurements import TaskDifference
from tunegate.artifacts.tasks import CacheUse, ResolvedTask
from tunegate_cache.format.records import Miss


def test_steps_come_by_what_they_give_and_ask_for_budget_once() -> None:
    cut = msgspec.structs.replace(TASKS[0], source="search", trials=12, stopped="budget")
    layers = (
        TaskDifference(name=cut.name, base_ms=1.0, head_ms=3.0, source="search"),
        TaskDifference(name="b", base_ms=1.0, head_ms=2.9, source="transfer"),
        TaskDifference(
            name="c", base_ms=1.0, head_ms=2.5, source="library", library="ONNX Runtime"
        ),
    )
    finding = parts.finding("fail", "", differences=layers)
    tuned = outcome((cut,), stopped="seconds")
    steps = next_steps(parts.verdict("fail", 1, finding), [tuned], None, [], None)
    assert [step.split(":")[0] for step in steps] == [
        "Look at c",
        "Look at b",
        f"Look at {cut.name}",
    ]
    assert "raise budget.minutes; tuned itself" in steps[1]
    assert "when the budget ended: a larger budget helps here too; as many again" in steps[2]
    assert sum("raise" in step for step in steps) == 1


def test_layers_of_which_the_same_is_said_are_one_step() -> None:
    layers = tuple(
        TaskDifference(
            name=name, base_ms=None, head_ms=0.3, source="library", library="ONNX Runtime"
        )
        for name in "abcd"
    )
    finding = parts.finding("fail", "", differences=layers)
    steps = next_steps(parts.verdict("fail", 1, finding), [], None, [], None)
    assert steps[0] == (
        "Look at a, b and c: new in this change, +0.9000 ms together, 75% of what slower layers "
        "lost. Each is run by ONNX Runtime: tuning would not help."
    )
    assert not any(step.startswith("Look at") for step in steps[1:])


@pytest.mark.parametrize(
    ("skipped", "said"),
    [("shared", "so tunegate warm tunes it"), ("behind", "tunegate warm --again tunes it")],
)
def test_no_budget_is_asked_for_what_this_command_never_tunes(
    skipped: Literal["shared", "behind"], said: str
) -> None:
    ended = outcome((CUT,), stopped="seconds")
    task = msgspec.structs.replace(make_task("a"), key=ended.tasks[0].key, target="cpu")
    resolved = ResolvedTask(task, Miss("absent"), skipped=skipped)
    plan = planned(CacheUse(location="", zone="main", mode="rw"), resolved)
    finding = parts.finding("fail", "", differences=(slower("default", CUT.name),))
    steps = next_steps(parts.verdict("fail", 1, finding), [ended], None, [], plan)
    assert said in steps[0]
    assert not any("raise" in step for step in steps)


def test_a_layer_that_was_changed_is_told_by_the_tuning_of_the_head() -> None:
    """The base's task has its name, too, and had other trials."""
    of_base, of_head = make_task("a", sides=("base",)), make_task("b")
    cut = msgspec.structs.replace(CUT, source="search", stopped="budget")
    rows = (msgspec.structs.replace(cut, trials=trials) for trials in (900, 7))
    ended = outcome(tuple(rows), stopped="seconds")
    tasks = tuple(
        msgspec.structs.replace(row, key=task.key)
        for row, task in zip(ended.tasks, (of_base, of_head), strict=True)
    )
    cache = CacheUse(location="", zone="main", mode="rw")
    plan = planned(cache, *(ResolvedTask(task, Miss("absent")) for task in (of_base, of_head)))
    finding = parts.finding("fail", "", differences=(slower("search", CUT.name),))
    tuned = msgspec.structs.replace(ended, tasks=tasks)
    steps = next_steps(parts.verdict("fail", 1, finding), [tuned], None, [], plan)
    assert "had only 7 trials when the budget ended" in steps[0]
