"""A model that cannot be built costs no trials."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import cast

import msgspec
import pytest

from tests.models.test_export_models import CONFIG, NoValues, Versions
from tests.support import report_parts as parts
from tests.support.measured_cells import make_changes
from tests.support.tuning_tasks import (
    CHANGES,
    make_planned,
    make_resolution,
    make_task,
    make_task_set,
)
from tunegate.artifacts.plans import ExpectedStep, StepKind, TuningPlan
from tunegate.artifacts.tasks import TaskUse, TuningTask
from tunegate.config import TargetConfig
from tunegate.plan.try_builds import (
    TriedModel,
    refusal_notes,
    resolution_of,
    try_builds,
    without_refused,
)
from tunegate.ports import Compiler, ModelJob, Progress
from tunegate.tools import ModelSource


class Refusing:
    """A compiler that cannot build the base, and what it was asked."""

    def __init__(self) -> None:
        self.asked: list[str] = []

    def refused(self, jobs: Sequence[ModelJob]) -> Sequence[str]:
        self.asked += [job.file.read_text() for job in jobs]
        return ["it has no code" if "base" in job.file.read_text() else "" for job in jobs]


class Silent:
    def expect(self, steps: Sequence[ExpectedStep]) -> None: ...
    def step(self, text: str, kind: StepKind | None = None) -> None: ...
    def update(self, text: str, seconds_left: float | None = None) -> None: ...
    def warn(self, text: str) -> None: ...


def used(name: str, *sides: str) -> TuningTask:
    uses = tuple(
        msgspec.convert({"model": "m.onnx", "side": side, "weight": 1, "name": name}, TaskUse)
        for side in sides
    )
    return msgspec.structs.replace(make_task(name), uses=uses)


BOTH, ONLY_BASE = used("conv", "base", "head"), used("dense", "base")


def planned(trials: int) -> TuningPlan:
    versions = {
        side: msgspec.structs.replace(parts.version("m.onnx", "r"), content_digest=side)
        for side in ("base", "head")
    }
    changes = parts.changes(parts.change("m.onnx", **versions))
    plan = parts.plan(changes, parts.cache())
    tasks = tuple(make_planned(task, trials=trials) for task in (BOTH, ONLY_BASE))
    shards = tuple(msgspec.structs.replace(shard, tasks=tasks) for shard in plan.shards)
    return msgspec.structs.replace(plan, shards=shards)


def tried(
    directory: Path, *, trials: int = 8, kind: str = "llvm"
) -> tuple[dict[TriedModel, str], list[str]]:
    target = msgspec.convert({"name": "cpu", "kind": kind}, TargetConfig)
    source = ModelSource(
        config=msgspec.structs.replace(CONFIG, targets=(target,)),
        repository=Versions(),
        candidates={},
        workdir=directory,
        read_inputs=lambda _: None,
        read_values=NoValues().rules,
    )
    compiler = Refusing()
    found = try_builds(
        planned(trials),
        source=source,
        compiler=cast("Compiler", compiler),
        progress=cast("Progress", Silent()),
    )
    return found, compiler.asked


def test_every_side_that_would_be_tuned_is_built_once(tmp_path: Path) -> None:
    refused, asked = tried(tmp_path)
    assert refused == {("m.onnx", "base", "cpu"): "it has no code"}
    assert asked == ["head", "base"]


@pytest.mark.parametrize(("trials", "kind"), [(0, "llvm"), (8, "cuda")])
def test_nothing_is_built_where_nothing_is_tuned_or_for_a_gpu(
    tmp_path: Path, trials: int, kind: str
) -> None:
    assert tried(tmp_path, trials=trials, kind=kind) == ({}, [])


def test_only_the_tasks_of_models_that_build_are_left() -> None:
    left = without_refused(
        make_task_set([BOTH, ONLY_BASE]), {("m.onnx", "base", "cpu"): "it has no code"}
    )
    (task,) = left.tasks
    assert [(use.model, use.side) for use in task.uses] == [("m.onnx", "head")]
    resolved = resolution_of(left, make_resolution([BOTH, ONLY_BASE]))
    assert [each.task for each in resolved.tasks] == [task]


def test_what_is_not_tuned_is_told_with_its_reason() -> None:
    refused: dict[TriedModel, str] = {("m.onnx", "head", "cpu"): "m.onnx: it has no code"}
    assert refusal_notes(refused, make_changes()) == (
        "m.onnx (head) is not tuned on cpu: it has no code",
    )
    assert refusal_notes(refused, CHANGES) == ("m.onnx is not tuned on cpu: it has no code",)
