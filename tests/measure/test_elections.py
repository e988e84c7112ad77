import io
from pathlib import Path
from typing import Any, cast

import msgspec
import pytest

from tests.models.test_export_models import NoValues, source_of
from tests.plan.shelf import Shelf
from tests.support import report_parts, tuning_tasks
from tests.support.measured_cells import MODEL, make_build, make_context, make_version
from tests.support.present import present
from tunegate.artifacts import builds
from tunegate.artifacts.candidates import CandidateBuild
from tunegate.artifacts.inputs import Files, GivenRules, InputRule
from tunegate.artifacts.plans import TuningPlan
from tunegate.artifacts.tasks import RecordOrigin, TaskUse
from tunegate.measure.remembered_elections import (
    KnownElections,
    new_elections,
    publish_elections,
    with_elections_after,
)
from tunegate.ports import ReadValues
from tunegate.system.progress.shown_progress import PlainLog
from tunegate.tools import GateTools, ReferenceRuntime, Tools
from tunegate_cache.format.how_built import HowBuilt, mark_of
from tunegate_cache.format.records import ExactHit, Lookup, Miss, Provenance

ABSENT = Miss("absent")
NOW = 1_700_000_000
TVM = CandidateBuild(runtime="tvm", title="TVM", is_tuned=True)
ONNX = CandidateBuild(runtime="onnxruntime", title="ONNX Runtime")
ORIGIN = RecordOrigin(
    device=tuning_tasks.DEVICE,
    toolchain=tuning_tasks.make_record().toolchain,
    source=Provenance(),
    installed="i",
)
USES = tuple(TaskUse(model=MODEL, side=side, weight=1, name="conv") for side in ("base", "head"))
TASK = msgspec.structs.replace(tuning_tasks.make_task(), uses=USES)
CHOICE = builds.RuntimeChoice(
    times=(
        builds.CandidateTime(candidate="tvm", title="TVM", ms=1.0),
        builds.CandidateTime(candidate="onnxruntime", title="ONNX Runtime", ms=2.0),
    ),
    is_complete=True,
)


class Noon:
    def monotonic(self) -> float:
        return 0.0

    def time(self) -> float:
        return NOW


def tools_with(
    index: Shelf,
    workdir: Path,
    *,
    candidates: tuple[CandidateBuild, ...] = (TVM, ONNX),
    origin: RecordOrigin = ORIGIN,
    threads: int = 1,
    values: ReadValues | None = None,
) -> Tools:
    nobody = cast("Any", None)
    return Tools(
        source=source_of(
            workdir, candidates={"cpu": candidates}, read_values=values or NoValues().rules
        ),
        compiler=nobody,
        index=index,
        tuner=nobody,
        builders={},
        reference=ReferenceRuntime("onnxruntime", "ONNX Runtime"),
        origin=origin,
        gate=GateTools(
            context=make_context(workdir, PlainLog(io.StringIO()), Noon()),
            rules=nobody,
            benchmarker=nobody,
            shipping=nobody,
        ),
        threads=threads,
    )


def plan_of(
    base: str = "graph", head: str = "graph", *, lookup: Lookup = ABSENT, trials: int = 0
) -> TuningPlan:
    base_version, head_version = (
        msgspec.structs.replace(make_version(content), graph_digest=graph)
        for content, graph in (("old", base), ("new", head))
    )
    change = report_parts.change(MODEL, change="weights-only", base=base_version, head=head_version)
    planned = tuning_tasks.make_planned(TASK, lookup, trials=trials)
    return tuning_tasks.make_plan(
        tuning_tasks.make_resolution([TASK], [lookup]),
        changes=msgspec.structs.replace(tuning_tasks.CHANGES, models=(change,)),
        shards=(tuning_tasks.make_shard(planned),),
    )


def built(
    choice: builds.RuntimeChoice | None = CHOICE, *, error: str | None = None
) -> builds.CellBuilds:
    head = msgspec.structs.replace(make_build(error=error), choice=choice)
    return builds.CellBuilds(cell=builds.Cell(model=MODEL, target="cpu"), base=None, head=head)


def kept(cell: builds.CellBuilds, first: Tools) -> Shelf:
    """A shelf with the records of a run that has elected so."""
    publish_elections(first, plan_of(), (), [cell])
    records = tuple(cast("Shelf", first.index).records)
    return Shelf({records[0].key: ExactHit(records)})


@pytest.fixture(name="known")
def _known(tmp_path: Path) -> Shelf:
    return kept(built(), tools_with(Shelf(), tmp_path / "first"))


def test_what_one_run_elects_the_next_one_remembers(tmp_path: Path, known: Shelf) -> None:
    (found,) = KnownElections(tools_with(known, tmp_path))(plan_of())
    assert (found.model, found.target, found.winner) == (MODEL, "cpu", "tvm")
    assert found.milliseconds == {"tvm": 1.0, "onnxruntime": 2.0}
    assert found.elected_at == NOW


def test_what_was_measured_before_the_time_was_over_is_remembered(tmp_path: Path) -> None:
    cut = msgspec.structs.replace(CHOICE, is_complete=False, is_cut_short=True)
    index = kept(built(cut), tools_with(Shelf(), tmp_path / "first"))
    (found,) = KnownElections(tools_with(index, tmp_path))(plan_of())
    assert (found.winner, found.is_cut_short) == ("tvm", True)
    assert found.milliseconds == {"tvm": 1.0, "onnxruntime": 2.0}


def test_one_that_goes_on_does_not_ask_again_who_cannot_ship(tmp_path: Path) -> None:
    """Another key, of whatever the election depends on, knows nothing of it."""
    refused = tuple(
        builds.RefusedCandidate(candidate=name, title=name, reason="no", is_lasting=is_lasting)
        for name, is_lasting in (("onnxruntime", True), ("late", False))
    )
    cut = msgspec.structs.replace(
        CHOICE, times=CHOICE.times[:1], refused=refused, is_complete=False, is_cut_short=True
    )
    candidates = (TVM, ONNX, CandidateBuild(runtime="late", title="Late"))
    index = kept(built(cut), tools_with(Shelf(), tmp_path / "first", candidates=candidates))
    (found,) = KnownElections(tools_with(index, tmp_path, candidates=candidates))(plan_of())
    assert found.refused == ("onnxruntime",)
    assert [found.leaves_out(each.name) for each in candidates] == [False, True, False]
    newer = msgspec.structs.replace(ORIGIN, installed="j")
    later = tools_with(index, tmp_path, candidates=candidates, origin=newer)
    assert KnownElections(later)(plan_of()) == ()


def test_how_the_winner_was_built_is_remembered_with_it(tmp_path: Path) -> None:
    how, cell = HowBuilt(compiled=(1, 2), kept=(mark_of("a" * 64),)), built()
    head = msgspec.structs.replace(present(cell.head), how=how)
    cell = msgspec.structs.replace(cell, head=head)
    index = kept(cell, tools_with(Shelf(), tmp_path / "first"))
    (found,) = KnownElections(tools_with(index, tmp_path))(plan_of())
    assert found.how == how


def test_a_change_of_the_graph_is_elected_anew_also_where_both_sides_are_known(
    tmp_path: Path, known: Shelf
) -> None:
    """A forged record of each side could name a runtime in which a slower head does not show."""
    index = Shelf()
    publish_elections(tools_with(index, tmp_path), plan_of(head="other"), (), [built()])
    both = {**known.known, index.records[0].key: ExactHit(tuple(index.records))}
    assert len(both) == 2
    assert KnownElections(tools_with(Shelf(both), tmp_path))(plan_of(head="other")) == ()


def test_what_an_election_depends_on_is_in_its_key(tmp_path: Path, known: Shelf) -> None:
    newer = msgspec.structs.replace(ORIGIN, installed="j")
    more = (TVM, ONNX, CandidateBuild(runtime="other", title="Other"))
    set_otherwise = (TVM, msgspec.structs.replace(ONNX, settings={"a": "b"}))
    for tools in (
        tools_with(known, tmp_path, origin=newer),
        tools_with(known, tmp_path, candidates=more),
        tools_with(known, tmp_path, candidates=set_otherwise),
        tools_with(known, tmp_path, threads=2),
    ):
        assert KnownElections(tools)(plan_of()) == ()
    tools = tools_with(known, tmp_path)
    assert KnownElections(tools)(plan_of("other", "other")) == ()
    assert KnownElections(tools)(plan_of(lookup=tuning_tasks.exact())) == ()


@pytest.mark.parametrize(("later", "is_known"), [("a", True), ("b", False)])
def test_values_of_the_same_name_with_another_content_are_elected_anew(
    later: str, tmp_path: Path, *, is_known: bool
) -> None:
    def given(name: str, workdir: Path) -> ReadValues:
        file = str(workdir / "inputs" / f"{name}.npy")
        rule = InputRule(Files((file,), ("in/x.npy",)), "given: in/x.npy")
        return lambda *_: GivenRules({"x": rule}, ())

    first = tmp_path / "first"
    index = kept(built(), tools_with(Shelf(), first, values=given("a", first)))
    tools = tools_with(index, tmp_path, values=given(later, tmp_path))
    assert bool(KnownElections(tools)(plan_of())) == is_known


def test_what_tuning_left_as_it_was_is_not_elected_again(tmp_path: Path, known: Shelf) -> None:
    planned = plan_of(trials=8)
    later = with_elections_after(tools_with(known, tmp_path), planned, ())
    assert [each.winner for each in later.elections] == ["tvm"]
    measured = tuning_tasks.make_outcome(records=(tuning_tasks.make_record(),), key=TASK.key)
    outcome = tuning_tasks.make_tuning(measured, stopped="trials")
    later = with_elections_after(tools_with(known, tmp_path), planned, (outcome,))
    assert later == planned


@pytest.mark.parametrize(
    "cell",
    [built(None), built(error="no"), built(msgspec.structs.replace(CHOICE, is_complete=False))],
)
def test_failed_and_incomplete_ones_are_forgotten(tmp_path: Path, cell: builds.CellBuilds) -> None:
    assert new_elections(tools_with(Shelf(), tmp_path), plan_of(), (), [cell]) == ()
