import dataclasses
import io
import re
from collections.abc import Sequence
from pathlib import Path

import pytest
from msgspec.structs import replace

from tests.measure.test_build_groups import ORIGIN, SLOW, plan_with, wrong_kernel_of
from tests.models.test_export_models import Versions, source_of
from tests.support import report_parts, tuning_tasks
from tests.support.measured_cells import (
    CELL,
    DEVICE,
    MODEL,
    make_build,
    make_context,
    make_job,
    make_model,
    make_version,
)
from tests.support.tuning_records import make_key, make_record
from tests.support.tuning_tasks import make_record as tuning_tasks_make_record
from tunegate.artifacts.builds import Build, BuiltTask, Cell, CellCandidates, unbuilt
from tunegate.artifacts.candidates import CandidateBuild, RememberedElection
from tunegate.artifacts.changes import SIDES, Side
from tunegate.artifacts.plans import TuningPlan
from tunegate.artifacts.tasks import ScheduleSource, TaskUse
from tunegate.config import AccuracyConfig, ModelConfig, TargetConfig
from tunegate.measure.build_records import DecidedByBase, as_in_base, decided_by_base
from tunegate.measure.build_sides import build, build_directory, built_alike
from tunegate.ports import Builder, BuildJob
from tunegate.system.progress.shown_progress import PlainLog
from tunegate.tools import ModelSource
from tunegate_cache.format.how_built import HowBuilt
from tunegate_cache.format.records import Miss, TransferHit


def test_models_with_like_names_never_share_a_directory() -> None:
    paths = ["a b.onnx", "a_b.onnx", "a/b.onnx", "a-b.onnx", "a?b.onnx"]
    directories = {build_directory(Cell(model=path, target="cpu"), "head") for path in paths}
    assert len(directories) == len(paths)


def test_no_model_is_called_as_the_directory_of_another() -> None:
    taken = build_directory(Cell(model="a/b.onnx", target="cpu"), "head").parts[1]
    named = build_directory(Cell(model=f"{taken}.onnx", target="cpu"), "head").parts[1]
    assert re.fullmatch(r"a_b-[0-9a-f]{64}", taken)
    assert named != taken


def test_a_long_path_has_a_directory() -> None:
    (_, name, *_) = build_directory(Cell(model=f"{'d/' * 400}m.onnx", target="cpu"), "head").parts
    assert len(name) <= 255


ANY = CandidateBuild(runtime="any", title="Any")
UNTUNED = plan_with(Miss("absent"))


def source_for(workdir: Path, *candidates: CandidateBuild) -> ModelSource:
    return source_of(workdir, candidates={"cpu": candidates})


def variants_for(workdir: Path, variants: str) -> ModelSource:
    """A source whose candidates are these variants, each of one letter."""
    return source_for(workdir, *(replace(ANY, title=each, variant=each) for each in variants))


def cells_built(
    plan: TuningPlan, source: ModelSource, builder: Builder, log: io.StringIO | None = None
) -> Sequence[CellCandidates]:
    """The plan's cells as the runtime "any" builds them, which tells what it does in the log."""
    context = make_context(source.workdir, PlainLog(log or io.StringIO(), update_seconds=0.0))
    return build(plan, (), source=source, builders={"any": builder}, context=context, origin=ORIGIN)


class Batches:
    """A builder of nothing, and which files it was given together."""

    def __init__(self) -> None:
        self.given: list[list[str]] = []

    def build(self, jobs: Sequence[BuildJob]) -> Sequence[Build]:
        self.given.append([job.model.file.read_text() for job in jobs])
        return [unbuilt("nothing") for _ in jobs]


@pytest.mark.parametrize(("is_tuned", "batches"), [(True, [["b"], ["h"]]), (False, [["b", "h"]])])
def test_a_head_waits_for_its_base_where_schedules_count(
    tmp_path: Path, is_tuned: bool, batches: list[list[str]]
) -> None:
    plan = plan_with(TransferHit((make_key(),), 0.5, (SLOW,)))
    (resolved,) = plan.resolution.tasks
    uses = tuple(TaskUse(model=MODEL, side=side, weight=1, name="conv") for side in SIDES)
    shared = replace(resolved, task=replace(resolved.task, uses=uses))
    resolution = replace(plan.resolution, tasks=(shared,))
    source = source_for(tmp_path, replace(ANY, is_tuned=is_tuned))
    builder = Batches()
    cells_built(replace(plan, resolution=resolution), source, builder)
    assert builder.given == batches


def test_candidates_that_nothing_compiles_are_built_beside_each_other(tmp_path: Path) -> None:
    builder, log = Batches(), io.StringIO()
    (cell,) = cells_built(UNTUNED, variants_for(tmp_path, "ab"), builder, log)
    assert builder.given == [["b", "h", "b", "h"]]
    assert f"4 builds with a: {MODEL} (base), {MODEL} (head)" in log.getvalue()
    assert [each.variant for each in cell.head] == ["a", "b"]


ELECTION = RememberedElection(
    model=MODEL,
    target="cpu",
    winner="any-b",
    milliseconds={"any-b": 1.0},
    elected_at=1,
    device=DEVICE.name,
    units=DEVICE.units,
)


@pytest.mark.parametrize(
    ("broken", "said"),
    [
        ("h", "h is not a valid ONNX model"),
        ("bh", f"h is not a valid ONNX model; and {MODEL}: b is not a valid ONNX model"),
    ],
)
def test_an_unreadable_head_tells_of_its_base_too(broken: str, said: str, tmp_path: Path) -> None:
    source = dataclasses.replace(source_for(tmp_path, ANY), repository=Versions(broken=broken))
    (cell,) = cells_built(UNTUNED, source, Batches())
    assert [each.error for each in cell.head] == [said]


def test_what_is_calibrated_says_that_it_lacks_values_and_is_not_built(tmp_path: Path) -> None:
    static = {"precision": "int8", "quantization": "static"}
    int8 = replace(ANY, title="Any (int8)", variant="int8", settings=static)
    source = source_for(tmp_path, ANY, int8)
    budget = ModelConfig(path=MODEL, accuracy=AccuracyConfig(max_error=5.0))
    config = replace(source.config, models=(budget,))
    builder = Batches()
    (cell,) = cells_built(UNTUNED, dataclasses.replace(source, config=config), builder)
    assert builder.given == [["b", "h"]]
    told = f"{MODEL}: Any (int8) is calibrated on values that you give"
    assert [str(each.error).startswith(told) for each in cell.head] == [False, True]


def test_an_election_that_was_cut_short_builds_its_leader_and_whoever_was_not_measured(
    tmp_path: Path,
) -> None:
    known = {"any-b": 1.0, "any-a": 2.0}
    cut = replace(ELECTION, milliseconds=known, is_cut_short=True)
    builder = Runtimes()
    plan = replace(UNTUNED, elections=(cut,))
    (cell,) = cells_built(plan, variants_for(tmp_path, "abc"), builder)
    assert builder.built == [("b", "b"), ("b", "h"), ("c", "b"), ("c", "h")]
    assert (cell.first, [each.candidate for each in cell.earlier]) == ("any-b", ["any-a"])


class Runtimes:
    """A builder whose builds of one variant fail, and which variants it built of which file."""

    def __init__(self, failing: str = "") -> None:
        self.failing, self.built = failing, list[tuple[str, str]]()
        self.how: list[tuple[str, HowBuilt | None]] = []

    def build(self, jobs: Sequence[BuildJob]) -> Sequence[Build]:
        self.built += [(job.variant, job.model.file.read_text()) for job in jobs]
        self.how += [(job.variant, job.how) for job in jobs]
        return [
            replace(unbuilt(""), error="no" if job.variant == self.failing else None)
            for job in jobs
        ]


def test_how_a_winner_was_built_is_told_to_its_builder_alone(tmp_path: Path) -> None:
    how = HowBuilt(compiled=(1, 2))
    plan = replace(UNTUNED, elections=(replace(ELECTION, how=how),))
    builder = Runtimes("b")
    cells_built(plan, variants_for(tmp_path, "ab"), builder)
    assert builder.how == [("b", how), ("b", how), ("a", None), ("a", None)]


@pytest.mark.parametrize(
    ("failing", "expected", "is_remembered"),
    [
        ("", [("b", "b"), ("b", "h")], True),
        ("b", [("b", "b"), ("b", "h"), ("a", "b"), ("a", "h")], False),
    ],
)
def test_a_remembered_winner_is_built_alone_unless_it_fails(
    tmp_path: Path, failing: str, expected: list[tuple[str, str]], is_remembered: bool
) -> None:
    plan = replace(UNTUNED, elections=(ELECTION,))
    builder = Runtimes(failing)
    (cell,) = cells_built(plan, variants_for(tmp_path, "ab"), builder)
    assert builder.built == expected
    assert (cell.head[0].choice is not None) == is_remembered
    assert {len(cell.base), len(cell.head)} == {1 if is_remembered else 2}


# A head has no schedule that its base had to give up; a base keeps what its head gives up.

RECORD = make_record()
WANTED: list[tuple[Cell, Side]] = [(CELL, "base"), (CELL, "head")]


class Checking:
    """A builder that schedules what it has records for, unless its side computes other numbers."""

    def __init__(self, wrong_on: str) -> None:
        self._wrong_on = wrong_on
        self.built: list[str] = []

    def build(self, jobs: Sequence[BuildJob]) -> Sequence[Build]:
        self.built += [job.directory.name for job in jobs]
        return [self._build(job) for job in jobs]

    def _build(self, job: BuildJob) -> Build:
        side = job.directory.name
        is_wrong = side == self._wrong_on and bool(job.records[RECORD.key])
        rid = "r" if job.records[RECORD.key] and not is_wrong else ""
        task = BuiltTask(key=RECORD.key, name="conv", weight=1, source="exact", rid=rid, ms=None)
        build = make_build(side, tasks=[task])
        return replace(build, wrong_kernels=(wrong_kernel_of(RECORD),) if is_wrong else ())


@pytest.mark.parametrize(
    ("wrong_on", "scheduled", "built"),
    [
        ("neither", {"base": True, "head": True}, ["base", "head"]),
        ("base", {"base": False, "head": False}, ["base", "head", "head"]),
        ("head", {"base": True, "head": False}, ["base", "head"]),
    ],
)
def test_what_a_base_gives_up_its_head_gives_up_too(
    wrong_on: str, scheduled: dict[str, bool], built: list[str]
) -> None:
    builder = Checking(wrong_on)
    jobs: dict[tuple[Cell, Side], BuildJob] = {which: job(which[1]) for which in WANTED}
    builds = built_alike(
        builder, jobs, dict(zip(jobs, builder.build(list(jobs.values())), strict=True))
    )
    assert {side: bool(build.tasks[0].rid) for (_, side), build in builds.items()} == scheduled
    assert builder.built == built


def job(side: str) -> BuildJob:
    return make_job(make_model(), Path(side), records={RECORD.key: (RECORD,), make_key("x"): ()})


BOTH: tuple[Side, Side] = ("base", "head")
A, B = tuning_tasks.key_of("a"), tuning_tasks.key_of("b")
CPU = TargetConfig(name="cpu")


def plan_of(**tasks: Sequence[Side]) -> TuningPlan:
    made = [tuning_tasks.make_task(name, sides=sides) for name, sides in tasks.items()]
    return tuning_tasks.make_plan(tuning_tasks.make_resolution(made))


@pytest.mark.parametrize("source", ["transfer", "claimed", "prior", "exact", "search"])
def test_the_base_decides_about_schedules_that_both_may_have(source: ScheduleSource) -> None:
    decided = decided_by_base(plan_of(a=BOTH, b=BOTH), {A: source}, [CPU])
    assert decided == {"m.onnx": DecidedByBase(frozenset({A}))}


@pytest.mark.parametrize(
    ("base", "head", "more", "is_alike"),
    [
        ("g", "g", {}, True),
        ("g", "h", {}, False),
        ("", "", {}, False),
        ("g", "g", {"b": ("head",)}, False),
    ],
)
def test_sides_of_one_graph_and_the_same_tasks_are_built_alike(
    base: str, head: str, more: dict[str, Sequence[Side]], is_alike: bool
) -> None:
    before, after = (
        replace(make_version(side), graph_digest=graph)
        for side, graph in (("base", base), ("head", head))
    )
    change = report_parts.change("m.onnx", change="weights-only", base=before, head=after)
    changes = replace(tuning_tasks.CHANGES, models=(change,))
    plan = replace(plan_of(a=BOTH, **more), changes=changes)
    assert decided_by_base(plan, {A: "exact"}, [CPU])["m.onnx"].is_alike == is_alike


@pytest.mark.parametrize(("source", "is_decided"), [("exact", False), ("transfer", True)])
def test_on_a_gpu_nothing_waits_for_times(source: ScheduleSource, is_decided: bool) -> None:
    gpu = TargetConfig(name="cpu", kind="cuda", arch="sm_80")
    assert bool(decided_by_base(plan_of(a=BOTH), {A: source}, [gpu])["m.onnx"].keys) == is_decided


JOB = make_job(
    make_model(),
    Path("d"),
    records={A: [tuning_tasks_make_record("a")], B: [tuning_tasks_make_record("b")]},
    sources={A: "transfer", B: "transfer"},
)


BOTH_TASKS = DecidedByBase(frozenset({A, B}))


def built(*rids: str, error: str | None = None) -> Build:
    tasks = tuple(
        BuiltTask(key=key, name="conv", weight=1, source="transfer", rid=rid, ms=None)
        for key, rid in zip((A, B), rids, strict=True)
    )
    return make_build(tasks=tasks, error=error)


def test_the_head_has_what_the_base_kept_and_drops_what_it_dropped() -> None:
    job = as_in_base(JOB, JOB, built("kept", ""), BOTH_TASKS)
    assert (list(job.records[A]), list(job.records[B])) == ([tuning_tasks_make_record("a")], [])
    assert job.settled == {A, B}
    assert job.sources == {A: "transfer"}


@pytest.mark.parametrize(
    ("tasks", "decided"), [(2, DecidedByBase(frozenset({A}))), (1, BOTH_TASKS)]
)
def test_tasks_of_the_head_alone_or_of_no_part_of_the_base_are_still_tried(
    tasks: int, decided: DecidedByBase
) -> None:
    base = built("kept", "")
    job = as_in_base(JOB, JOB, replace(base, tasks=base.tasks[:tasks]), decided)
    assert list(job.records[B]) == [tuning_tasks_make_record("b")]
    assert job.settled == {A}


def test_what_a_form_chooses_by_times_is_the_choice_of_the_base() -> None:
    base = replace(built("kept", ""), how=HowBuilt(kept=(7,)))
    whole = replace(JOB, settings={"launch": "whole"})
    assert as_in_base(whole, whole, base, DecidedByBase(frozenset())).decided == (7,)
    assert as_in_base(JOB, JOB, base, DecidedByBase(frozenset())).decided == ()


def test_other_weights_follow_all_that_was_decided_of_the_base() -> None:
    how = HowBuilt(compiled=(1, 2))
    base = replace(built("kept", ""), how=how)
    alike = DecidedByBase(frozenset({A, B}), is_alike=True)
    assert as_in_base(JOB, JOB, base, alike) == replace(JOB, how=how)
    larger = replace(JOB.model, shapes={"x": (8,)})
    assert as_in_base(JOB, replace(JOB, model=larger), base, alike).how is None
