from __future__ import annotations

import os
from typing import Any

import pytest

from tests.cli.handlers.cache_shell import Shell
from tests.support.tuning_records import TARGET, make_key, make_shape
from tunegate.artifacts import artifact_io
from tunegate.artifacts.changes import ChangeSet, Revisions
from tunegate.artifacts.plans import Budget, Cost, TuningPlan
from tunegate.artifacts.tasks import CacheUse, Resolution, ResolvedTask, TaskUse, TuningTask
from tunegate.system.output.directory import opened_output
from tunegate_cache.format.records import Miss, WorkloadKey


def planned(shell: Shell, key: WorkloadKey, extents: tuple[int, ...] = (64, 64)) -> None:
    """Writes a plan as if a run had looked this task up and missed."""
    task = TuningTask(
        key=key,
        shape=make_shape(extents=extents),
        target="cpu",
        operator="conv2d",
        dtype="float32",
        flops=1.0,
        uses=(TaskUse(model="m.onnx", side="head", weight=1, name="conv1"),),
    )
    use = CacheUse(location=shell.url, zone="main", mode="rw")
    plan = TuningPlan(
        changes=ChangeSet(revisions=Revisions(base=None, head="a" * 40), models=()),
        resolution=Resolution(tasks=(ResolvedTask(task, Miss("absent")),), cache=use),
        shards=(),
        budget=Budget(seconds=1.0, trials=None),
        estimate=Cost(seconds=0.0),
    )
    (shell.root / "out").mkdir(exist_ok=True)
    artifact_io.write(shell.root / "out" / "plan.json", plan)


@pytest.mark.parametrize("compacted", [False, True])
def test_the_first_key_that_differs_is_named(shell: Shell, compacted: bool) -> None:
    def differs(key: WorkloadKey, extents: tuple[int, ...] = (64, 64)) -> dict[str, Any]:
        planned(shell, key, extents)
        if compacted:
            shell.cache("compact")
        now: dict[str, Any] = shell.cache("why-miss", "conv1")["now"]
        return now

    assert differs(make_key("new"))["differs"] == "skeleton"
    shell.publish("known")
    assert differs(make_key("known"))["differs"] == "nothing"
    assert differs(make_key("known", TARGET[::-1]))["differs"] == "target"
    near = differs(make_key("new"), (64, 128))
    assert (near["differs"], near["neighbour"]["distance"]) == ("extents", 1.0)
    assert "128 instead of 64" in near["detail"]
    shell.publish("private", zone="dev/me")
    assert differs(make_key("private"))["differs"] == "zone"
    own = shell.cache("why-miss", "conv1", "--zone", "dev/me")["now"]
    assert own["differs"] == "trust"
    assert "dev/me" in own["detail"]


def test_an_unknown_task_lists_those_there_are(shell: Shell) -> None:
    planned(shell, make_key())
    where = ("--out", str(shell.root / "out"))
    assert 'Name one of: "conv1".' in shell.shown("why-miss", "pool9", *where, code=2)
    assert "first key that differs: skeleton" in shell.shown("why-miss", "conv1", *where)


def test_a_hit_is_not_told_as_a_difference(shell: Shell) -> None:
    planned(shell, make_key("known"))
    shell.publish("known")
    said = shell.shown("why-miss", "conv1", "--out", str(shell.root / "out"))
    assert "  in the cache: there are records in zone main" in said
    assert "differs" not in said


def test_a_run_that_has_no_plan_yet_is_told_to_who_asks(shell: Shell) -> None:
    where = ("--out", str(shell.root / "out"))
    said = shell.shown("why-miss", "conv1", *where, code=2)
    assert "`tunegate run` or `tunegate plan` writes it" in said
    with opened_output(shell.root / "out", "run"):
        said = shell.shown("why-miss", "conv1", *where, code=2)
    assert f"process {os.getpid()} (tunegate run, since" in said
    assert "has no plan yet. Ask again" in said
