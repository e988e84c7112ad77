from __future__ import annotations

import io
import re
from collections.abc import Sequence
from pathlib import Path

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.plugin.sides.test_export_models import CONFIG, NoValues, Versions
from tests.support.measured_cells import DEVICE, MODEL, make_changes, make_context
from tests.support.tuning_records import make_key, make_record, make_shape
from tunegate.artifacts.builds import Build, Cell, unbuilt
from tunegate.artifacts.candidates import CandidateBuild
from tunegate.artifacts.changes import SIDES
from tunegate.artifacts.cost import Cost
from tunegate.artifacts.outcomes import Stopped, TaskOutcome, TuningOutcome
from tunegate.artifacts.plans import Budget, TuningPlan
from tunegate.artifacts.remembered_elections import RememberedElection
from tunegate.artifacts.tasks import CacheUse, Claims, Resolution, ResolvedTask, TaskUse, TuningTask
from tunegate.edges.terminal import PlainLog
from tunegate.ports import BuildJob
from tunegate.stages.build import best_records, build, build_directory
from tunegate.tools import ModelSource
from tunegate_cache.format.records import ExactHit, Lookup, Miss, TransferHit, TuningRecord

SLOW = make_record(run_nanoseconds=(9_000,))
FAST = make_record(run_nanoseconds=(1_000,), decisions=((3, (8, 8)), (5, (0,))))


def plan_with(lookup: Lookup, claims: Claims | None = None) -> TuningPlan:
    task = TuningTask(
        key=make_key(),
        shape=make_shape(),
        target="cpu",
        operator="conv2d",
        dtype="float32",
        flops=1.0,
        uses=(TaskUse(model="m.onnx", side="head", weight=1, name="conv"),),
    )
    use = CacheUse(location="x", zone="main", mode="rw")
    return TuningPlan(
        changes=make_changes(),
        resolution=Resolution(tasks=(ResolvedTask(task, lookup, claims),), cache=use),
        shards=(),
        budget=Budget(seconds=None, trials=None),
        estimate=Cost(seconds=0.0),
    )


def outcome_with(*records: TuningRecord, stopped: Stopped = "finished") -> TuningOutcome:
    task = TaskOutcome(
        key=make_key(),
        target="cpu",
        name="conv",
        source="search",
        records=records,
        trials=8,
        before_ms=None,
        best_ms=None,
        seconds=1.0,
        stopped=stopped,
    )
    return TuningOutcome(
        shard=0,
        target="cpu",
        tasks=(task,),
        spent=Cost(seconds=1.0),
        device=DEVICE,
        stopped="finished",
    )


def test_a_cached_record_is_used_as_it_is() -> None:
    best, sources = best_records(plan_with(ExactHit((FAST, SLOW))), [])
    assert best == {make_key(): (FAST, SLOW)}
    assert sources == {make_key(): "exact"}


def test_what_this_run_measured_comes_first() -> None:
    best, sources = best_records(plan_with(ExactHit((SLOW,))), [outcome_with(FAST)])
    assert best == {make_key(): (FAST, SLOW)}
    assert sources == {make_key(): "search"}


SOURCE = make_record("another")
NEAR = TransferHit((SOURCE.key,), 1.0, (SOURCE,))


def test_a_neighbours_record_is_built_where_nothing_was_measured() -> None:
    best, sources = best_records(plan_with(NEAR), [])
    assert best == {make_key(): (SOURCE,)}
    assert sources == {make_key(): "transfer"}


def test_a_neighbours_record_gives_way_to_anything_that_was_measured() -> None:
    best, sources = best_records(plan_with(NEAR), [outcome_with(SLOW)])
    assert best == {make_key(): (SLOW,)}
    assert sources == {make_key(): "search"}


def test_a_foreign_record_in_an_outcome_is_left_out() -> None:
    best, _ = best_records(plan_with(Miss("absent")), [outcome_with(make_record("another"))])
    assert best == {}


CLAIMS = Claims((FAST,), is_searched=True)


@pytest.mark.parametrize("lookup", [ExactHit((SLOW,)), NEAR], ids=["exact", "transfer"])
def test_a_claim_that_nothing_has_measured_never_stands_before_what_is_trusted(
    lookup: ExactHit | TransferHit,
) -> None:
    best, _ = best_records(plan_with(lookup, CLAIMS), [])
    assert best == {make_key(): lookup.records}


def test_a_claim_is_used_unmeasured_where_trusted_zones_have_nothing() -> None:
    plan = plan_with(Miss("absent"), CLAIMS)
    for outcomes in ([], [outcome_with(stopped="not-started")]):
        best, sources = best_records(plan, outcomes)
        assert (best, sources) == ({make_key(): (FAST,)}, {make_key(): "claimed"})


def test_a_claim_that_was_tried_here_and_failed_is_out() -> None:
    best, _ = best_records(plan_with(Miss("absent"), CLAIMS), [outcome_with(stopped="failed")])
    assert best == {}


def test_only_what_this_run_measured_of_a_claim_counts() -> None:
    best, sources = best_records(plan_with(Miss("absent"), CLAIMS), [outcome_with(SLOW)])
    assert (best, sources) == ({make_key(): (SLOW,)}, {make_key(): "search"})


@given(st.text(min_size=1), st.sampled_from(["base", "head"]))
def test_a_build_directory_is_plain_whatever_the_model_is_called(path: str, side: str) -> None:
    directory = build_directory(Cell(model=path, target="cpu"), side)  # type: ignore[arg-type]
    assert re.fullmatch(r"builds/[A-Za-z0-9._-]+/cpu/(base|head)", directory.as_posix())
    assert ".." not in directory.parts


def test_models_with_like_names_never_share_a_directory() -> None:
    paths = ["a b.onnx", "a_b.onnx", "a/b.onnx", "a-b.onnx", "a?b.onnx"]
    directories = {build_directory(Cell(model=path, target="cpu"), "head") for path in paths}
    assert len(directories) == len(paths)


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
    shared = msgspec.structs.replace(
        resolved, task=msgspec.structs.replace(resolved.task, uses=uses)
    )
    resolution = msgspec.structs.replace(plan.resolution, tasks=(shared,))
    candidate = CandidateBuild(runtime="any", title="Any", is_tuned=is_tuned)
    source = ModelSource(
        config=CONFIG,
        repository=Versions(),
        candidates={"cpu": (candidate,)},
        workdir=tmp_path,
        read_inputs=lambda _: None,
        read_values=NoValues().rules,
    )
    builder = Batches()
    build(
        msgspec.structs.replace(plan, resolution=resolution),
        (),
        source=source,
        builders={"any": builder},
        context=make_context(tmp_path, PlainLog(io.StringIO())),
    )
    assert builder.given == batches


class Runtimes:
    """A builder whose builds of one variant fail, and which variants it built of which file."""

    def __init__(self, failing: str = "") -> None:
        self.failing, self.built = failing, list[tuple[str, str]]()

    def build(self, jobs: Sequence[BuildJob]) -> Sequence[Build]:
        self.built += [(job.variant, job.model.file.read_text()) for job in jobs]
        return [
            msgspec.structs.replace(
                unbuilt(""), error="no" if job.variant == self.failing else None
            )
            for job in jobs
        ]


@pytest.mark.parametrize(
    ("failing", "built", "is_remembered"),
    [
        ("", [("b", "b"), ("b", "h")], True),
        ("b", [("b", "b"), ("b", "h"), ("a", "b"), ("a", "h")], False),
    ],
)
def test_a_remembered_winner_is_built_alone_unless_it_fails(
    tmp_path: Path, failing: str, built: list[tuple[str, str]], is_remembered: bool
) -> None:
    candidates = tuple(CandidateBuild(runtime="any", title=each, variant=each) for each in "ab")
    source = ModelSource(
        config=CONFIG,
        repository=Versions(),
        candidates={"cpu": candidates},
        workdir=tmp_path,
        read_inputs=lambda _: None,
        read_values=NoValues().rules,
    )
    election = RememberedElection(
        model=MODEL,
        target="cpu",
        winner="any-b",
        milliseconds={"any-b": 1.0},
        elected_at=1,
        device=DEVICE.name,
        units=DEVICE.units,
    )
    plan = msgspec.structs.replace(plan_with(Miss("absent")), elections=(election,))
    builder = Runtimes(failing)
    context = make_context(tmp_path, PlainLog(io.StringIO()))
    (cell,) = build(plan, (), source=source, builders={"any": builder}, context=context)
    assert builder.built == built
    assert (cell.head[0].choice is not None) == is_remembered
    assert {len(cell.base), len(cell.head)} == {1 if is_remembered else 2}
