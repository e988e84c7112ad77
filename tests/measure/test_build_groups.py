from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.measured_cells import DEVICE, make_changes
from tests.support.plans import plan_of
from tests.support.tuning_records import make_key, make_record, make_shape
from tests.support.tuning_tasks import make_task
from tunegate.artifacts.builds import Cell
from tunegate.artifacts.candidates import CandidateBuild
from tunegate.artifacts.changes import SIDES
from tunegate.artifacts.outcomes import Stopped, TaskOutcome, TuningOutcome
from tunegate.artifacts.plans import Budget, Cost, TuningPlan
from tunegate.artifacts.tasks import (
    CacheUse,
    Claims,
    Resolution,
    ResolvedTask,
    Skipped,
    TaskUse,
    TuningTask,
)
from tunegate.measure.build_records import best_records
from tunegate.measure.build_sides import (
    WantedBuild,
    built_together,
    compiled_later,
    compiled_sides,
    told_builds,
)
from tunegate_cache.format.records import ExactHit, Lookup, Miss, TransferHit, TuningRecord


def candidate(runtime: str, variant: str = "", *, is_tuned: bool = False) -> CandidateBuild:
    return CandidateBuild(runtime=runtime, title=runtime, variant=variant, is_tuned=is_tuned)


def test_a_compiler_builds_one_candidate_after_the_other_and_others_all_at_once() -> None:
    ours = (candidate("tvm", is_tuned=True), candidate("tvm", "bf16", is_tuned=True))
    theirs = (candidate("fast"), candidate("fast", "bf16"), candidate("other"))
    assert built_together({"cpu": (*ours, *theirs)}) == [
        [ours[0]],
        [ours[1]],
        [theirs[0], theirs[1]],
        [theirs[2]],
    ]


def test_what_two_targets_have_is_built_in_one_group() -> None:
    both, one = candidate("fast"), candidate("fast", "int8")
    assert built_together({"a": (both,), "b": (both, one)}) == [[both, one]]


WANTED = st.builds(
    WantedBuild,
    candidate=st.sampled_from([candidate("tvm", is_tuned=True), candidate("fast")]),
    cell=st.sampled_from([Cell(model="a.onnx", target="cpu"), Cell(model="b.onnx", target="cpu")]),
    side=st.sampled_from(SIDES),
)


@given(st.lists(st.lists(WANTED, max_size=4), max_size=5))
def test_a_compiler_keeps_a_model_open_until_its_last_candidate_is_built(
    groups: list[list[WantedBuild]],
) -> None:
    later = compiled_later(groups)
    assert len(later) == len(groups)
    for at, places in enumerate(later):
        rest = [each for group in groups[at + 1 :] for each in group]
        assert places == {each.place for each in rest if each.candidate.is_tuned}


A, B = (Cell(model=name, target="cpu") for name in ("a.onnx", "b.onnx"))


def test_a_model_that_the_compiler_does_not_take_is_not_listed_among_its_builds() -> None:
    compiler = candidate("tvm", is_tuned=True)
    wanted = [WantedBuild(compiler, cell, "head") for cell in (A, B)]
    assert told_builds(wanted, {(B, "head")}) == "build: 1 build with tvm: b.onnx (head)"
    assert told_builds(wanted, ()) == "build: 2 builds with tvm: a.onnx (head), b.onnx (head)"
    assert told_builds(wanted, (), is_compared=False).endswith("with tvm: a.onnx, b.onnx")
    other = [each._replace(candidate=candidate("fast")) for each in wanted]
    assert told_builds(other, {(B, "head")}).startswith("build: 2 builds with fast: a.onnx")


def test_a_side_with_a_task_is_one_that_the_compiler_takes() -> None:
    plan = plan_of([make_task("a")])
    (use,) = plan.resolution.tasks[0].task.uses
    assert compiled_sides(plan) == {(Cell(model=use.model, target="cpu"), use.side)}


SLOW = make_record(run_nanoseconds=(9_000,))
FAST = make_record(run_nanoseconds=(1_000,), decisions=((3, (8, 8)), (5, (0,))))


def plan_with(lookup: Lookup, claims: Claims | None = None, *, skipped: Skipped = "") -> TuningPlan:
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
        resolution=Resolution(tasks=(ResolvedTask(task, lookup, claims, skipped),), cache=use),
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


FAILURE = make_record(status="wrong", run_nanoseconds=())


def test_the_prior_picks_for_a_task_that_nothing_was_run_for() -> None:
    reasons: tuple[Stopped, ...] = ("not-started", "shared", "behind")
    for outcomes in ([], *([outcome_with(stopped=reason)] for reason in reasons)):
        best, sources = best_records(plan_with(Miss("absent", (FAILURE,))), outcomes)
        assert (best, sources) == ({make_key(): (FAILURE,)}, {make_key(): "prior"})


def test_the_prior_has_no_word_where_all_that_was_tried_failed() -> None:
    _, sources = best_records(plan_with(Miss("absent")), [outcome_with(stopped="failed")])
    assert sources == {}


def test_what_failed_before_is_told_beside_the_neighbours_records() -> None:
    near = TransferHit((SOURCE.key,), 1.0, (SOURCE,), (FAILURE,))
    best, sources = best_records(plan_with(near), [])
    assert (best, sources) == ({make_key(): (SOURCE, FAILURE)}, {make_key(): "transfer"})


@pytest.mark.parametrize("lookup", [Miss("absent", (FAILURE,)), NEAR], ids=["miss", "transfer"])
def test_nothing_is_picked_for_models_far_behind_what_ships(lookup: Lookup) -> None:
    planned = plan_with(lookup, skipped="behind")
    for outcomes in ([], [outcome_with(stopped="behind")]):
        assert best_records(planned, outcomes) == ({}, {})


def test_models_far_behind_keep_what_was_measured() -> None:
    best, sources = best_records(plan_with(ExactHit((FAST,)), skipped="behind"), [])
    assert (best, sources) == ({make_key(): (FAST,)}, {make_key(): "exact"})
