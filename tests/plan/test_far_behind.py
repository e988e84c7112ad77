from __future__ import annotations

import msgspec
import pytest

from tests.plan.shelf import Shelf
from tests.support.tuning_tasks import (
    CHANGES,
    DEVICE,
    exact,
    key_of,
    make_outcome,
    make_record,
    make_resolution,
    make_task,
)
from tunegate import __version__
from tunegate.artifacts.builds import Build, CandidateTime, Cell, CellBuilds, RuntimeChoice
from tunegate.artifacts.candidates import CandidateBuild
from tunegate.artifacts.changes import Side
from tunegate.artifacts.outcomes import TaskOutcome, TuningOutcome
from tunegate.artifacts.plans import Budget, Cost, TuningPlan
from tunegate.artifacts.tasks import RecordOrigin, ResolvedTask, TuningTask
from tunegate.plan.far_behind import (
    MIN_TRIALS,
    KnownStandings,
    is_far_behind,
    kept_share,
    new_standings,
)
from tunegate.tune.model_keys import model_keys
from tunegate_cache.format.model_standing import ModelStanding, standing_records
from tunegate_cache.format.records import ExactHit, Miss, Provenance, WorkloadKey

ORIGIN = RecordOrigin(
    device=DEVICE, toolchain=make_record().toolchain, source=Provenance(repository="r")
)
M = ("m.onnx", "cpu")
CANDIDATES = {
    "cpu": (
        CandidateBuild(runtime="tvm", title="TVM", is_tuned=True),
        CandidateBuild(runtime="onnxruntime", title="ONNX Runtime"),
    )
}


def shelf_with(key: WorkloadKey, compiled_ns: int, other_ns: int) -> Shelf:
    return Shelf({key: standing_hit(key, compiled_ns, other_ns)})


def standing_hit(key: WorkloadKey, compiled_ns: int = 9_000, other_ns: int = 1_000) -> ExactHit:
    standing = ModelStanding(key=key, compiled_nanoseconds=compiled_ns, other_nanoseconds=other_ns)
    records = standing_records(
        standing,
        device=ORIGIN.device,
        toolchain=ORIGIN.toolchain,
        measured_at=1,
        source=ORIGIN.source,
    )
    return ExactHit(records)


def tasks_of(*names: str, sides: tuple[Side, ...] = ("head",)) -> list[TuningTask]:
    return [make_task(name, sides=sides) for name in names]


@pytest.mark.parametrize(("compiled", "is_behind"), [(9_000, True), (1_900, False)])
def test_a_model_is_far_behind_where_a_trusted_zone_has_the_times(
    compiled: int, is_behind: bool
) -> None:
    tasks = tasks_of("conv")
    index = shelf_with(model_keys(tasks, __version__)[M]["head"], compiled, 1_000)
    assert KnownStandings(index, ORIGIN, CANDIDATES)(tasks) == ({M} if is_behind else set())


def test_nobody_is_behind_where_no_other_runtime_may_ship() -> None:
    """A target that is for the compiler alone may have been for all runtimes before."""
    tasks = tasks_of("conv")
    index = shelf_with(model_keys(tasks, __version__)[M]["head"], 9_000, 1_000)
    alone = {"cpu": CANDIDATES["cpu"][:1]}
    assert KnownStandings(index, ORIGIN, alone)(tasks) == frozenset()


def test_a_change_is_far_behind_only_where_both_its_sides_are() -> None:
    base, head = make_task("old", sides=("base",)), make_task("new")
    keys = model_keys([base, head], __version__)[M]
    for known in keys.values():
        assert (
            KnownStandings(shelf_with(known, 9_000, 1_000), ORIGIN, CANDIDATES)([base, head])
            == frozenset()
        )


@pytest.mark.parametrize(
    ("sides", "trusted", "own", "is_behind"),
    [
        (("head",), (), ("head",), True),
        (("base", "head"), ("base",), ("head",), True),
        (("base", "head"), (), ("base", "head"), False),
        (("base", "head"), (), ("head",), False),
        (("base", "head"), ("head",), ("base",), False),
    ],
)
def test_the_own_zone_is_believed_of_a_head_whose_base_is_behind_or_not_there(
    sides: tuple[Side, ...], trusted: tuple[Side, ...], own: tuple[Side, ...], is_behind: bool
) -> None:
    tasks = [make_task(f"of-{side}", sides=(side,)) for side in sides]
    keys = model_keys(tasks, __version__)[M]
    index = Shelf(
        {keys[side]: standing_hit(keys[side]) for side in trusted},
        own={keys[side]: standing_hit(keys[side]) for side in own},
    )
    assert KnownStandings(index, ORIGIN, CANDIDATES)(tasks) == ({M} if is_behind else frozenset())


def test_another_compiler_or_nothing_known_gives_nobody_up() -> None:
    tasks = tasks_of("conv")
    index = shelf_with(model_keys(tasks, __version__)[M]["head"], 9_000, 1_000)
    newer = msgspec.structs.replace(ORIGIN.toolchain, tvm="1.0")
    origin = msgspec.structs.replace(ORIGIN, toolchain=newer)
    assert KnownStandings(index, origin, CANDIDATES)(tasks) == frozenset()
    assert KnownStandings(Shelf(), ORIGIN, CANDIDATES)(tasks) == frozenset()


def plan_of(tasks: list[TuningTask], *known: str) -> TuningPlan:
    lookups = [exact(t.uses[0].name) if t.uses[0].name in known else Miss("absent") for t in tasks]
    return TuningPlan(
        changes=CHANGES,
        resolution=make_resolution(tasks, lookups),
        shards=(),
        budget=Budget(seconds=None, trials=None),
        estimate=Cost(seconds=0.0),
    )


def outcome_of(*tasks: TaskOutcome) -> TuningOutcome:
    return TuningOutcome(
        shard=0, target="cpu", tasks=tasks, spent=Cost(seconds=1.0), device=DEVICE, stopped="trials"
    )


def built(tvm_ms: float, other_ms: float) -> CellBuilds:
    times = (
        CandidateTime(candidate="tvm", title="TVM", ms=tvm_ms),
        CandidateTime(candidate="onnxruntime", title="ONNX Runtime", ms=other_ms),
    )
    head = Build(
        key="k",
        directory="",
        tasks=(),
        check=None,
        error=None,
        size_bytes=0,
        seconds=0.0,
        choice=RuntimeChoice(times=times),
    )
    return CellBuilds(cell=Cell(model="m.onnx", target="cpu"), base=None, head=head)


def found(tvm_ms: float, *outcomes: TaskOutcome) -> tuple[ModelStanding, ...]:
    plan = plan_of(tasks_of("done", "begun"))
    return new_standings(plan, [outcome_of(*outcomes)], [built(tvm_ms, 1.0)], CANDIDATES)


DONE = make_outcome("done", records=(make_record("done"),), best_ms=9.0)
BEGUN = make_outcome("begun", trials=4, best_ms=1.0)


def test_what_was_tuned_and_stays_slow_is_said_with_its_times() -> None:
    (standing,) = found(10.0, DONE, BEGUN)
    assert standing.key == model_keys(tasks_of("done", "begun"), __version__)[M]["head"]
    assert (standing.compiled_nanoseconds, standing.other_nanoseconds) == (10_000_000, 1_000_000)


def test_nothing_is_said_of_what_may_catch_up_is_finished_or_was_not_tuned() -> None:
    assert found(2.1, DONE, BEGUN) == ()
    finished = msgspec.structs.replace(BEGUN, records=(make_record("begun"),))
    assert found(10.0, DONE, finished) == ()
    assert found(10.0) == ()


def kept(*outcomes: TaskOutcome, known: tuple[str, ...] = ()) -> float:
    tasks = [ResolvedTask(make_task(outcome.name), Miss("absent")) for outcome in outcomes]
    by_key = {outcome.key: outcome for outcome in outcomes}
    return kept_share("m.onnx", tasks, by_key, {key_of(name) for name in known}, "llvm")


def test_what_is_finished_stays_and_what_had_few_trials_may_come_to_nothing() -> None:
    done, begun = make_outcome("done", best_ms=3.0), make_outcome("begun", trials=4, best_ms=1.0)
    assert kept(done, begun, known=("done",)) == pytest.approx(0.75)


def test_a_long_search_keeps_what_more_of_it_would_not_save() -> None:
    long = make_outcome("long", trials=10 * MIN_TRIALS, best_ms=1.0)
    assert 0.2 < kept(long) < 1.0
    assert kept(make_outcome("short", trials=MIN_TRIALS - 1, best_ms=1.0)) == 0.0


def test_what_an_earlier_run_finished_stays_as_well() -> None:
    task = ResolvedTask(make_task("old"), exact("old"))
    assert kept_share("m.onnx", [task], {}, {key_of("old")}, "llvm") == 1.0
    assert kept_share("m.onnx", [], {}, set(), "llvm") == 0.0


def test_twenty_times_slower_and_hardly_searched_is_no_reason_to_give_up() -> None:
    assert not is_far_behind(2.11, 0.11, kept=0.02)
    assert is_far_behind(2.11, 0.11, kept=0.5)
    assert not is_far_behind(0.19, 0.11, kept=1.0)
