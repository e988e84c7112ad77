from __future__ import annotations

import dataclasses
import io
import re
from collections.abc import Sequence
from pathlib import Path

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.measure.test_best_records import SLOW, plan_with
from tests.models.test_export_models import CONFIG, NoValues, Versions
from tests.support.measured_cells import DEVICE, MODEL, make_context
from tests.support.tuning_records import make_key
from tunegate.artifacts.builds import Build, Cell, unbuilt
from tunegate.artifacts.candidates import CandidateBuild, RememberedElection
from tunegate.artifacts.changes import SIDES
from tunegate.artifacts.tasks import TaskUse
from tunegate.config import AccuracyConfig, ModelConfig
from tunegate.measure.build_sides import build, build_directory
from tunegate.ports import BuildJob
from tunegate.system.progress.shown_progress import PlainLog
from tunegate.tools import ModelSource
from tunegate_cache.format.how_built import HowBuilt
from tunegate_cache.format.records import Miss, TransferHit


@given(st.text(min_size=1), st.sampled_from(["base", "head"]))
def test_a_build_directory_is_plain_whatever_the_model_is_called(path: str, side: str) -> None:
    directory = build_directory(Cell(model=path, target="cpu"), side)  # type: ignore[arg-type]
    assert re.fullmatch(r"builds/[A-Za-z0-9._-]+/cpu/(base|head)", directory.as_posix())
    assert ".." not in directory.parts


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


def source_for(workdir: Path, candidates: tuple[CandidateBuild, ...]) -> ModelSource:
    return ModelSource(
        config=CONFIG,
        repository=Versions(),
        candidates={"cpu": candidates},
        workdir=workdir,
        read_inputs=lambda _: None,
        read_values=NoValues().rules,
    )


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
    source = source_for(tmp_path, (candidate,))
    builder = Batches()
    build(
        msgspec.structs.replace(plan, resolution=resolution),
        (),
        source=source,
        builders={"any": builder},
        context=make_context(tmp_path, PlainLog(io.StringIO())),
    )
    assert builder.given == batches


def test_candidates_of_a_runtime_that_compiles_nothing_are_built_beside_each_other(
    tmp_path: Path,
) -> None:
    candidates = tuple(CandidateBuild(runtime="any", title=each, variant=each) for each in "ab")
    builder, log = Batches(), io.StringIO()
    (cell,) = build(
        plan_with(Miss("absent")),
        (),
        source=source_for(tmp_path, candidates),
        builders={"any": builder},
        context=make_context(tmp_path, PlainLog(log, update_seconds=0.0)),
    )
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


def test_what_is_calibrated_says_that_it_lacks_values_and_is_not_built(tmp_path: Path) -> None:
    static = CandidateBuild(
        runtime="any",
        title="Any (int8)",
        variant="int8",
        settings={"precision": "int8", "quantization": "static"},
    )
    source = source_for(tmp_path, (CandidateBuild(runtime="any", title="Any"), static))
    budget = ModelConfig(path=MODEL, accuracy=AccuracyConfig(max_error=5.0))
    config = msgspec.structs.replace(source.config, models=(budget,))
    builder = Batches()
    (cell,) = build(
        plan_with(Miss("absent")),
        (),
        source=dataclasses.replace(source, config=config),
        builders={"any": builder},
        context=make_context(tmp_path, PlainLog(io.StringIO())),
    )
    assert builder.given == [["b", "h"]]
    told = f"{MODEL}: Any (int8) is calibrated on values that you give"
    assert [str(each.error).startswith(told) for each in cell.head] == [False, True]


def test_an_election_that_was_cut_short_builds_its_leader_and_whoever_was_not_measured(
    tmp_path: Path,
) -> None:
    candidates = tuple(CandidateBuild(runtime="any", title=each, variant=each) for each in "abc")
    known = {"any-b": 1.0, "any-a": 2.0}
    cut = msgspec.structs.replace(ELECTION, milliseconds=known, is_cut_short=True)
    builder = Runtimes()
    (cell,) = build(
        msgspec.structs.replace(plan_with(Miss("absent")), elections=(cut,)),
        (),
        source=source_for(tmp_path, candidates),
        builders={"any": builder},
        context=make_context(tmp_path, PlainLog(io.StringIO())),
    )
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
            msgspec.structs.replace(
                unbuilt(""), error="no" if job.variant == self.failing else None
            )
            for job in jobs
        ]


def test_how_a_winner_was_built_is_told_to_its_builder_alone(tmp_path: Path) -> None:
    candidates = tuple(CandidateBuild(runtime="any", title=each, variant=each) for each in "ab")
    how = HowBuilt(compiled=(1, 2))
    plan = msgspec.structs.replace(
        plan_with(Miss("absent")), elections=(msgspec.structs.replace(ELECTION, how=how),)
    )
    builder = Runtimes("b")
    build(
        plan,
        (),
        source=source_for(tmp_path, candidates),
        builders={"any": builder},
        context=make_context(tmp_path, PlainLog(io.StringIO())),
    )
    assert builder.how == [("b", how), ("b", how), ("a", None), ("a", None)]


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
    source = source_for(tmp_path, candidates)
    plan = msgspec.structs.replace(plan_with(Miss("absent")), elections=(ELECTION,))
    builder = Runtimes(failing)
    context = make_context(tmp_path, PlainLog(io.StringIO()))
    (cell,) = build(plan, (), source=source, builders={"any": builder}, context=context)
    assert builder.built == built
    assert (cell.head[0].choice is not None) == is_remembered
    assert {len(cell.base), len(cell.head)} == {1 if is_remembered else 2}
