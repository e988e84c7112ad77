from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import cast

import msgspec
import pytest

from tests.measure.test_elections import ORIGIN, tools_with
from tests.models.test_export_models import CONFIG, source_of
from tests.plan.shelf import Shelf
from tests.support import report_parts, tuning_tasks
from tests.support.measured_cells import MODEL, make_changes
from tests.support.tuning_records import make_key, make_shape
from tests.support.tuning_tasks import make_task
from tunegate.artifacts.candidates import CandidateBuild, Candidates
from tunegate.artifacts.changes import SIDES
from tunegate.artifacts.inputs import ShapedModel
from tunegate.artifacts.plans import ExpectedStep, StepKind, TuningPlan
from tunegate.artifacts.tasks import TaskUse, TuningTask
from tunegate.config import Config, ModelConfig, TargetConfig
from tunegate.errors import ModelError, UnsupportedModelError
from tunegate.models.export_models import ExportedModels
from tunegate.plan import extract, try_builds
from tunegate.plan.extract import ExtractKey, merge_tasks
from tunegate.plan.task_lists import KnownLists
from tunegate.ports import Compiler, ModelJob, Progress
from tunegate_cache.format.records import ExactHit, WorkloadKey

CPU = TargetConfig(name="cpu")
EXTRACT_CONFIG = Config(models=(ModelConfig(path="**"),), targets=(CPU,))


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


def test_a_task_that_only_the_base_has_is_kept() -> None:
    assert [t.uses[0].side for t in merged([task("new")], [task("old")])] == ["head", "base"]


def test_a_side_that_is_no_model_is_said_to_be_an_error_at_once_and_not_to_be_untuned() -> None:
    why = f"{MODEL}: axis 0 of x has no name and no size. Give it one."
    told = "cannot be used: axis 0 of x has no name and no size. Give it one."
    models = ExportedModels(config=EXTRACT_CONFIG, files={}, unreadable={(MODEL, "head"): why})
    assert [*extract.unusable_notes(models)] == [f"{MODEL} {told}"]
    both = msgspec.structs.replace(models, unreadable={(MODEL, "head"): why, (MODEL, "base"): why})
    assert [*extract.unusable_notes(both)] == [f"{MODEL} (head) {told}", f"{MODEL} (base) {told}"]


def test_both_sides_are_looked_at_also_where_only_weights_differ() -> None:
    changes = make_changes()
    retrained = msgspec.structs.replace(changes.models[0], change="weights-only")
    changes = msgspec.structs.replace(changes, models=(retrained,))
    files = {(MODEL, side): ShapedModel(Path(side), {}) for side in SIDES}
    models = ExportedModels(config=EXTRACT_CONFIG, files=files)
    wanted = extract._models_to_extract(changes, models, BOTH)
    assert [side for _, side, _ in wanted] == ["head", "base"]
    assert extract._models_to_extract(changes, models, {"cpu": (PLAIN,)}) == []


@pytest.mark.parametrize("kind", [ModelError, UnsupportedModelError])
@pytest.mark.parametrize("candidates", [BOTH, {"cpu": (COMPILED,)}])
@pytest.mark.parametrize("why", ["operator Odd", "ONNX Runtime does not load it (odd)"])
def test_a_head_that_does_not_compile_is_a_note_and_the_others_go_on(
    kind: type[ModelError], candidates: Candidates, why: str
) -> None:
    answers: list[Sequence[TuningTask] | ModelError] = [kind(f"{MODEL}: {why}"), [task("old")]]
    result = merge_tasks(make_changes(), [HEAD, BASE], answers, candidates)
    assert [t.uses[0].side for t in result.tasks] == ["base"]
    is_run = kind is UnsupportedModelError and candidates is BOTH and why == "operator Odd"
    still = "; it is still gated, by Plain Runtime" if is_run else ""
    assert result.notes == (f"{MODEL} (head) is not tuned: {why}{still}",)
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


# A model that cannot be built costs no trials.


class Refusing:
    """A compiler that cannot build the base, and what it was asked."""

    def __init__(self) -> None:
        self.asked: list[str] = []

    def refusals(self, jobs: Sequence[ModelJob]) -> Sequence[str]:
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
    return msgspec.structs.replace(tuning_tasks.make_task(name), uses=uses)


TRY_BUILDS_BOTH, ONLY_BASE = used("conv", "base", "head"), used("dense", "base")


def planned(trials: int) -> TuningPlan:
    versions = {
        side: msgspec.structs.replace(report_parts.version("m.onnx", "r"), content_digest=side)
        for side in ("base", "head")
    }
    changes = report_parts.changes(report_parts.change("m.onnx", **versions))
    plan = report_parts.plan(changes, report_parts.cache())
    tasks = tuple(
        tuning_tasks.make_planned(task, trials=trials) for task in (TRY_BUILDS_BOTH, ONLY_BASE)
    )
    shards = tuple(msgspec.structs.replace(shard, tasks=tasks) for shard in plan.shards)
    return msgspec.structs.replace(plan, shards=shards)


def trial(
    directory: Path, *, trials: int = 8, kind: str = "llvm"
) -> tuple[dict[try_builds.TriedModel, str], list[str]]:
    target = msgspec.convert({"name": "cpu", "kind": kind}, TargetConfig)
    source = source_of(directory, msgspec.structs.replace(CONFIG, targets=(target,)))
    compiler = Refusing()
    found = try_builds.try_builds(
        planned(trials),
        source=source,
        compiler=cast("Compiler", compiler),
        progress=cast("Progress", Silent()),
    )
    return found, compiler.asked


def test_every_side_that_would_be_tuned_is_built_once(tmp_path: Path) -> None:
    refused, asked = trial(tmp_path)
    assert refused == {("m.onnx", "base", "cpu"): "it has no code"}
    assert asked == ["head", "base"]


@pytest.mark.parametrize(("trials", "kind"), [(0, "llvm"), (8, "cuda")])
def test_nothing_is_built_where_nothing_is_tuned_or_for_a_gpu(
    tmp_path: Path, trials: int, kind: str
) -> None:
    assert trial(tmp_path, trials=trials, kind=kind) == ({}, [])


@pytest.mark.parametrize(("before", "seconds"), [(1, [600.0, 300.0, 300.0]), (3, [600.0] * 3)])
def test_targets_that_the_base_lacks_share_the_minutes_of_one_runner(
    tmp_path: Path, before: int, seconds: list[float]
) -> None:
    gpus = tuple(TargetConfig(name=name, kind="cuda") for name in ("a", "b", "c"))
    models = EXTRACT_CONFIG.models
    source = source_of(
        tmp_path,
        Config(models=models, targets=gpus),
        config_before=Config(models=models, targets=gpus[:before]),
    )
    tools = replace(tools_with(Shelf({}), tmp_path), source=source)
    tasks = tuning_tasks.make_task_set([make_task(gpu.name, target=gpu.name) for gpu in gpus])
    _, plan = try_builds.plan_of_built(tools, tasks, tuning_tasks.make_resolution([]), shards=3)
    assert [shard.budget.seconds for shard in plan.shards] == seconds
    _, in_turn = try_builds.plan_of_built(tools, tasks, tuning_tasks.make_resolution([]))
    assert sum("is new and not tuned" in note for note in in_turn.notes) == 3 - before


def test_only_the_tasks_of_models_that_build_are_left() -> None:
    left = try_builds.without_refused(
        tuning_tasks.make_task_set([TRY_BUILDS_BOTH, ONLY_BASE]),
        {("m.onnx", "base", "cpu"): "it has no code"},
    )
    (task,) = left.tasks
    assert [(use.model, use.side) for use in task.uses] == [("m.onnx", "head")]
    resolved = try_builds.resolution_of(
        left, tuning_tasks.make_resolution([TRY_BUILDS_BOTH, ONLY_BASE])
    )
    assert [each.task for each in resolved.tasks] == [task]


def test_what_is_not_tuned_is_told_with_its_reason() -> None:
    refused: dict[try_builds.TriedModel, str] = {
        ("m.onnx", "head", "cpu"): "m.onnx: it has no code"
    }
    assert try_builds.refusal_notes(refused, make_changes()) == (
        "m.onnx (head) is not tuned on cpu: it has no code",
    )
    assert try_builds.refusal_notes(refused, tuning_tasks.CHANGES) == (
        "m.onnx is not tuned on cpu: it has no code",
    )


# Lists of tasks that are remembered.


TASKS = [
    msgspec.structs.replace(
        make_task(name),
        uses=(TaskUse(model="m.onnx", side="head", weight=2, name=f"layer/{name}"),),
        flops=30.0,
        bytes_moved=40.0,
    )
    for name in ("conv", "dense")
]


class Listing:
    """A compiler that lists TASKS, or raises, and what it was asked about."""

    def __init__(self, answer: Sequence[TuningTask] | ModelError = TASKS) -> None:
        self._answer = answer
        self.opened: list[str] = []

    def kernels(self, jobs: Sequence[ModelJob]) -> Sequence[str]:
        return ["" if job.file.stem == "odd" else job.file.stem for job in jobs]

    def tasks(
        self, jobs: Sequence[ModelJob], known: Mapping[int, Sequence[TuningTask]]
    ) -> Sequence[Sequence[TuningTask] | ModelError]:
        self.opened += [job.file.name for n, job in enumerate(jobs) if n not in known]
        return [known.get(n, self._answer) for n in range(len(jobs))]


def job(file: str, path: str = "m.onnx") -> ModelJob:
    return ModelJob(file=Path(file), path=path, shapes={}, target=CPU)


BOTH_SIDES = [job("same.head"), job("same.base")]


def lists(
    place: Path, shelf: Shelf, compiler: Listing, *, are_believed: bool = True, installed: str = "i"
) -> KnownLists:
    origin = msgspec.structs.replace(ORIGIN, installed=installed)
    tools = replace(tools_with(shelf, place, origin=origin), compiler=cast("Compiler", compiler))
    return KnownLists(tools, are_believed=are_believed)


def teach(place: Path, compiler: Listing | None = None) -> Shelf:
    """A cache in which an earlier run has left its list."""
    shelf = Shelf()
    lists(place, shelf, compiler or Listing()).list_tasks([job("same.head")])
    known: dict[WorkloadKey, ExactHit] = {}
    for record in shelf.records:
        known[record.key] = ExactHit((*getattr(known.get(record.key), "records", ()), record))
    return Shelf(known)


def test_a_model_is_opened_once_and_then_remembered(tmp_path: Path) -> None:
    shelf, compiler = teach(tmp_path), Listing()
    assert lists(tmp_path, shelf, compiler).list_tasks(BOTH_SIDES) == [TASKS, TASKS]
    assert compiler.opened == []
    assert shelf.records == []


OTHERS = [
    [job("same.head")],
    [job("same.head"), job("other.base")],
    [job("same.head"), job("odd.base")],
    [job("odd.head"), job("odd.base")],
    [job("same.head"), job("same.base", path="another.onnx")],
    [BOTH_SIDES[0], msgspec.structs.replace(BOTH_SIDES[1], shapes={"x": (2, 3)})],
    [
        msgspec.structs.replace(each, target=TargetConfig(name="cpu", threads=7))
        for each in BOTH_SIDES
    ],
    [
        msgspec.structs.replace(each, target=TargetConfig(name="cpu", cpu="znver3"))
        for each in BOTH_SIDES
    ],
]


@pytest.mark.parametrize("jobs", OTHERS)
def test_sides_that_are_not_alike_and_other_models_are_opened(
    tmp_path: Path, jobs: Sequence[ModelJob]
) -> None:
    compiler = Listing()
    lists(tmp_path, teach(tmp_path), compiler).list_tasks(jobs)
    assert compiler.opened == [each.file.name for each in jobs]


def test_another_version_of_what_is_installed_lists_anew(tmp_path: Path) -> None:
    compiler = Listing()
    lists(tmp_path, teach(tmp_path), compiler, installed="newer").list_tasks(BOTH_SIDES)
    assert len(compiler.opened) == len(BOTH_SIDES)


def test_warm_believes_no_list_and_corrects_a_wrong_one(tmp_path: Path) -> None:
    shelf, compiler = teach(tmp_path, Listing(TASKS[:1])), Listing()
    warm = lists(tmp_path, shelf, compiler, are_believed=False)
    assert warm.list_tasks(BOTH_SIDES) == [TASKS, TASKS]
    assert len(compiler.opened) == len(BOTH_SIDES)
    assert len(shelf.records) == 1
