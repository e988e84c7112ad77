from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import msgspec
import pytest

from tests.support.measured_cells import MODEL, make_changes
from tests.support.tuning_records import make_key, make_shape
from tunegate.artifacts.candidates import CandidateBuild, Candidates
from tunegate.artifacts.changes import SIDES
from tunegate.artifacts.inputs import ShapedModel
from tunegate.artifacts.tasks import TaskUse, TuningTask
from tunegate.config import Config, ModelConfig, TargetConfig
from tunegate.errors import ModelError, UnsupportedModelError
from tunegate.models.export_models import ExportedModels
from tunegate.plan import extract as extract_module
from tunegate.plan.extract import ExtractKey, merge_tasks

CPU = TargetConfig(name="cpu")
CONFIG = Config(models=(ModelConfig(path="**"),), targets=(CPU,))


COMPILED = CandidateBuild(runtime="compiled", title="Compiled", is_tuned=True)
PLAIN = CandidateBuild(runtime="plain", title="Plain Runtime")
BOTH = {"cpu": (COMPILED, PLAIN)}


def task(name: str, weight: int = 1) -> TuningTask:
    use = TaskUse(model="any", side="head", weight=weight, name=name)
    return TuningTask(
        key=make_key(name),
        shape=make_shape(),
        target="cpu",
        operator="conv2d",
        dtype="float32",
        flops=1.0,
        uses=(use,),
    )


HEAD: ExtractKey = (MODEL, "head", CPU)
BASE: ExtractKey = (MODEL, "base", CPU)


def merged(*answers: Sequence[TuningTask] | ModelError) -> Sequence[TuningTask]:
    return merge_tasks(make_changes(), [HEAD, BASE][: len(answers)], answers, BOTH).tasks


def test_a_task_of_both_sides_is_one_task_with_two_uses() -> None:
    (found,) = merged([task("conv", 2)], [task("conv", 3)])
    assert [(u.side, u.weight) for u in found.uses] == [("head", 2), ("base", 3)]


def test_a_task_that_only_the_base_has_is_kept() -> None:
    found = merged([task("new")], [task("old")])
    assert [t.uses[0].side for t in found] == ["head", "base"]


def test_a_side_that_is_no_model_is_said_to_be_an_error_at_once_and_not_to_be_untuned() -> None:
    why = f"{MODEL}: axis 0 of x has no name and no size. Give it one."
    told = "cannot be used: axis 0 of x has no name and no size. Give it one."
    models = ExportedModels(config=CONFIG, files={}, unreadable={(MODEL, "head"): why})
    assert [*extract_module.unusable_notes(models)] == [f"{MODEL} {told}"]
    both = msgspec.structs.replace(models, unreadable={(MODEL, "head"): why, (MODEL, "base"): why})
    assert [*extract_module.unusable_notes(both)] == [
        f"{MODEL} (head) {told}",
        f"{MODEL} (base) {told}",
    ]


def test_both_sides_are_looked_at_also_where_only_weights_differ() -> None:
    changes = make_changes()
    retrained = msgspec.structs.replace(changes.models[0], change="weights-only")
    changes = msgspec.structs.replace(changes, models=(retrained,))
    files = {(MODEL, side): ShapedModel(Path(side), {}) for side in SIDES}
    models = ExportedModels(config=CONFIG, files=files)
    wanted = extract_module._wanted(changes, models, BOTH)
    assert [side for _, side, _ in wanted] == ["head", "base"]
    assert extract_module._wanted(changes, models, {"cpu": (PLAIN,)}) == []


def test_weights_are_trusted_to_leave_no_task_as_it_was() -> None:
    changes = make_changes()
    retrained = msgspec.structs.replace(changes.models[0], change="weights-only")
    changes = msgspec.structs.replace(changes, models=(retrained,))
    found = merge_tasks(changes, [HEAD, BASE], [[task("twice", 2)], [task("once")]], BOTH).tasks
    assert [(t.uses[0].side, t.uses[0].weight) for t in found] == [("head", 2), ("base", 1)]


@pytest.mark.parametrize("kind", [ModelError, UnsupportedModelError])
@pytest.mark.parametrize("candidates", [BOTH, {"cpu": (COMPILED,)}])
def test_a_head_that_does_not_compile_is_a_note_and_the_others_go_on(
    kind: type[ModelError], candidates: Candidates
) -> None:
    answers: list[Sequence[TuningTask] | ModelError] = [
        kind(f"{MODEL}: operator Odd"),
        [task("old")],
    ]
    result = merge_tasks(make_changes(), [HEAD, BASE], answers, candidates)
    assert [t.uses[0].side for t in result.tasks] == ["base"]
    is_run = kind is UnsupportedModelError and candidates is BOTH
    still = "; it is still gated, by Plain Runtime" if is_run else ""
    assert result.notes == (f"{MODEL} (head) is not tuned: operator Odd{still}",)
    assert result.broken_bases == {}


@pytest.mark.parametrize(
    ("error", "candidates", "is_broken"),
    [
        (ModelError("no model"), BOTH, True),
        (UnsupportedModelError("operator Odd"), BOTH, False),
        (UnsupportedModelError("operator Odd"), {"cpu": (COMPILED,)}, True),
    ],
)
def test_a_base_that_nothing_may_run_is_broken(
    error: ModelError, candidates: Candidates, is_broken: bool
) -> None:
    result = merge_tasks(make_changes(), [HEAD, BASE], [[task("a")], error], candidates)
    assert [t.uses[0].side for t in result.tasks] == ["head"]
    still = "" if is_broken else "; it is still measured, by Plain Runtime"
    assert result.notes == (f"{MODEL} (base) is not tuned: {error}{still}",)
    assert result.broken_bases == ({MODEL: str(error)} if is_broken else {})
