"""Resolve against a real cache in a directory."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec
import pytest

from tests.plan.shelf import Shelf
from tests.support.measured_cells import make_build
from tests.support.present import present
from tests.support.tuning_tasks import (
    DEVICE,
    SHAPE,
    exact,
    key_of,
    make_outcome,
    make_plan,
    make_planned,
    make_record,
    make_resolution,
    make_shard,
    make_task,
    make_task_set,
    make_tuning,
    transfer,
)
from tunegate import __version__
from tunegate.artifacts.builds import CandidateTime, Cell, CellBuilds, RuntimeChoice
from tunegate.artifacts.candidates import CandidateBuild
from tunegate.artifacts.changes import Side
from tunegate.artifacts.outcomes import TaskOutcome
from tunegate.artifacts.plans import TuningPlan
from tunegate.artifacts.tasks import Claims, RecordOrigin, Resolution, ResolvedTask, TuningTask
from tunegate.config import BudgetConfig, CacheConfig, Config, ModelConfig, TargetConfig
from tunegate.plan.allocation import TargetPart, target_parts
from tunegate.plan.far_behind import MIN_TRIALS, KnownStandings, kept_share, new_standings
from tunegate.plan.resolve import refresh_shard, resolve
from tunegate.system.cache.shared_cache import SharedCache
from tunegate.tune.model_keys import model_keys
from tunegate_cache.format.model_standing import ModelStanding, standing_records
from tunegate_cache.format.records import (
    ExactHit,
    Miss,
    Provenance,
    TransferHit,
    WorkloadKey,
    WorkloadShape,
)
from tunegate_cache.format.target_key import target_key

CONFIG = Config(models=(ModelConfig(path="m.onnx"),))
KNOWN = make_record("known")
CONV, DENSE = make_task("conv2d"), make_task("dense")
OTHER_KIND = WorkloadShape("6" * 64, (64, 64))


def resolution(tmp_path: Path) -> Resolution:
    """One task the cache knows, one of the same kind, one of another."""
    config = CacheConfig(url=str(tmp_path / "cache"))
    SharedCache(config, state=tmp_path / "a", root=tmp_path).publish([KNOWN])
    other = msgspec.structs.replace(make_task("other"), shape=OTHER_KIND)
    tasks = make_task_set([make_task("known"), make_task("similar"), other])
    return resolve(tasks, SharedCache(config, state=tmp_path / "b", root=tmp_path), CONFIG)


def test_every_task_gets_its_answer_in_order(tmp_path: Path) -> None:
    known, similar, other = resolution(tmp_path).tasks
    assert known.lookup == ExactHit((KNOWN,))
    assert similar.lookup == TransferHit((KNOWN.key,), 0.0, (KNOWN,))
    assert other.lookup == Miss("absent")
    assert similar.task.shape == SHAPE


def test_a_time_that_no_hardware_reaches_is_refused_and_counted(tmp_path: Path) -> None:
    cache = SharedCache(CacheConfig(url="cache"), state=tmp_path / "a", root=tmp_path)
    cache.publish([make_record("lied", milliseconds=1e-6)])
    lied = resolve(make_task_set([make_task("lied", flops=1e10)]), cache, CONFIG)
    assert lied.tasks[0].lookup == Miss("rejected")
    assert lied.cache.notes == ("cache: 1 record was refused (faster than any hardware)",)


def test_what_an_earlier_run_only_looked_at_is_a_start_and_no_answer(tmp_path: Path) -> None:
    cache = SharedCache(CacheConfig(url="cache"), state=tmp_path / "a", root=tmp_path)
    looked_at = make_record("begun", times=3)
    cache.publish([looked_at, make_record("done")])
    begun, done = resolve(
        make_task_set([make_task("begun"), make_task("done")]), cache, CONFIG
    ).tasks
    assert begun.lookup == TransferHit((looked_at.key,), 0.0, (looked_at,))
    assert isinstance(done.lookup, ExactHit)


def test_tasks_that_are_resumed_are_counted_as_such(tmp_path: Path) -> None:
    cache = SharedCache(CacheConfig(url="cache"), state=tmp_path / "a", root=tmp_path)
    cache.publish([make_record("begun", times=3)])
    used = resolve(make_task_set([make_task("begun")]), cache, CONFIG).cache
    assert (used.exact, used.transfer) == (0, 1)
    assert used.notes == (
        "cache: 1 task that an earlier run did not finish: tuned on from what it has found",
    )


def test_what_only_the_own_zone_has_stands_beside_the_answer(tmp_path: Path) -> None:
    own = CacheConfig(url="cache", zone="pr/o/x/1")
    SharedCache(own, state=tmp_path / "a", root=tmp_path).publish([make_record("new")])
    cache = SharedCache(own, state=tmp_path / "a", root=tmp_path)
    found = resolve(make_task_set([make_task("new"), make_task("other")]), cache, CONFIG)
    assert [task.lookup for task in found.tasks] == [Miss("absent")] * 2
    assert found.tasks[0].claims == Claims((make_record("new"),), is_searched=True)
    assert (found.cache.exact, found.cache.claimed) == (0, 2)  # one is a neighbour of the other
    (note,) = found.cache.notes
    assert note.startswith("cache: zone pr/o/x/1, which is not trusted, has schedules of its own")
    assert "2 tasks: measured in this run" in note


def test_what_both_sides_have_is_skipped_and_nothing_is_claimed_of_it(tmp_path: Path) -> None:
    own = CacheConfig(url="cache", zone="pr/o/x/1")
    SharedCache(own, state=tmp_path / "a", root=tmp_path).publish([make_record("shared")])
    shared = make_task("shared", sides=("base", "head"))
    cache = SharedCache(own, state=tmp_path / "a", root=tmp_path)
    found = resolve(make_task_set([shared]), cache, CONFIG)
    assert found.tasks == (ResolvedTask(shared, Miss("absent"), skipped="shared"),)
    assert (found.cache.claimed, found.cache.notes) == (0, ())


def test_an_unfinished_task_that_both_sides_have_is_counted_but_not_said_to_be_tuned_on(
    tmp_path: Path,
) -> None:
    cache = SharedCache(CacheConfig(url="cache"), state=tmp_path / "a", root=tmp_path)
    cache.publish([make_record("begun", times=3)])
    shared = make_task("begun", sides=("base", "head"))
    used = resolve(make_task_set([shared]), cache, CONFIG).cache
    assert (used.exact, used.transfer, used.notes) == (0, 1, ())


def test_a_task_that_a_killed_attempt_has_measured_starts_from_its_records() -> None:
    index = Shelf({key_of("conv2d"): exact("conv2d"), key_of("dense"): transfer()})
    found = refresh_shard(make_shard(make_planned(CONV), make_planned(DENSE)), index)
    conv, dense = (planned.resolved.lookup for planned in found.tasks)
    assert conv == TransferHit((key_of("conv2d"),), 0.0, exact("conv2d").records)
    assert dense == Miss("absent")
    assert [planned.trials for planned in found.tasks] == [8, 8]


def test_only_what_is_still_to_be_tuned_is_asked_for() -> None:
    index = Shelf({key_of("dense"): exact("dense")})
    done = make_planned(DENSE, exact("dense", milliseconds=9.0), trials=0)
    found = refresh_shard(make_shard(make_planned(CONV), done), index)
    assert index.asked == [key_of("conv2d")]
    assert found.tasks[1] == done


def test_a_shard_with_nothing_to_tune_asks_nothing() -> None:
    index, finished = Shelf(), make_shard(make_planned(CONV, exact(), trials=0))
    assert refresh_shard(finished, index) is finished
    assert index.asked == []


@pytest.mark.parametrize(
    ("repository", "named"), [("acme/vision", "acme/vision in zone vision"), ("", "zone vision")]
)
def test_whose_records_serve_the_run_and_of_which_zone_is_a_note(
    tmp_path: Path, repository: str, named: str
) -> None:
    url = str(tmp_path / "cache")
    theirs = msgspec.structs.replace(KNOWN, source=Provenance(repository=repository))
    vision = CacheConfig(url=url, zone="vision")
    SharedCache(vision, state=tmp_path / "a", root=tmp_path).publish([theirs])
    tasks = make_task_set([make_task("known"), make_task("similar")])
    speech = CacheConfig(url=url, zone="speech", read_zones=("speech", "vision"))
    cache = SharedCache(speech, state=tmp_path / "b", root=tmp_path)
    assert resolve(tasks, cache, CONFIG).cache.notes == (
        f"cache: records of {named} serve 2 tasks",
    )


TWO_THREADS = {"kind": "llvm", "mcpu": "skylake", "num-cores": 2}


def test_a_full_cache_of_runners_of_another_size_says_so_once(tmp_path: Path) -> None:
    task = msgspec.structs.replace(make_task("a"), attributes=json.dumps(TWO_THREADS))
    tasks = make_task_set([task, msgspec.structs.replace(task, key=key_of("b"))])
    config = CacheConfig(url=str(tmp_path / "cache"))

    def notes() -> tuple[str, ...]:
        cache = SharedCache(config, state=tmp_path / "b", root=tmp_path)
        return resolve(tasks, cache, CONFIG).cache.notes

    assert notes() == ()
    one_thread = target_key({**TWO_THREADS, "num-cores": 1}).digest
    record = msgspec.structs.replace(KNOWN, key=WorkloadKey("1" * 64, one_thread))
    SharedCache(config, state=tmp_path / "a", root=tmp_path).publish([record])
    (note,) = notes()
    assert "of another size: threads 1 there, 2 here" in note
    assert "targets[].threads" in note
    here = msgspec.structs.replace(KNOWN, key=task.key)
    SharedCache(config, state=tmp_path / "a", root=tmp_path).publish([here])
    assert notes() == ()


# One budget over several targets.

CPU = TargetConfig(name="cpu", usd_per_hour=1.0)
GPU = TargetConfig(name="gpu", kind="cuda", usd_per_hour=4.0)


def parts(
    cpu: int,
    gpu: int,
    *,
    shards: int | None = None,
    known: int = 0,
    unmerged: Sequence[str] = (),
    gpu_usd: float = 4.0,
    **budget: float,
) -> tuple[TargetPart, ...]:
    config = Config(
        models=(ModelConfig(path="*.onnx"),),
        targets=(CPU, msgspec.structs.replace(GPU, usd_per_hour=gpu_usd)),
        budget=BudgetConfig(**budget),  # type: ignore[arg-type]  # trials is whole
    )
    tasks = [
        ResolvedTask(make_task(f"{target}{number}", target=target), Miss("absent"))
        for target, count in (("cpu", cpu), ("gpu", gpu))
        for number in range(count)
    ]
    tasks += [ResolvedTask(make_task(f"known{n}"), exact(f"known{n}")) for n in range(known)]
    return target_parts(tasks, config, shards=shards, unmerged=unmerged)


def test_money_buys_the_same_time_per_task_on_either_target() -> None:
    cpu, gpu = parts(1, 1, usd=10.0)
    assert (cpu.usd or 0) + (gpu.usd or 0) == pytest.approx(10.0)
    seconds = [(part.usd or 0) / (part.usd_per_hour or 1) for part in (cpu, gpu)]
    shares = [(part.seconds or 0) for part in (cpu, gpu)]
    assert seconds[0] / seconds[1] == pytest.approx(shares[0] / shares[1])


def test_every_target_gets_a_shard_even_if_fewer_were_asked_for() -> None:
    assert [part.shards for part in parts(2, 3, shards=1)] == [1, 1]


@pytest.mark.parametrize("shards", [1, 2, 8])
@pytest.mark.parametrize("unmerged", [("gpu",), ("cpu", "gpu")])
def test_the_targets_that_a_head_adds_share_the_minutes_of_one_runner(
    shards: int, unmerged: Sequence[str]
) -> None:
    found = parts(3, 3, shards=shards, unmerged=unmerged, minutes=10.0)
    new = [each for each in found if each.target.name in unmerged]
    assert sum((each.seconds or 0) * each.shards for each in new) == pytest.approx(600.0)
    assert all(each.seconds == 600.0 for each in found if each not in new)


@pytest.mark.parametrize("shards", [None, 2, 8])
@pytest.mark.parametrize("gpu_usd", [1e-9, 4.0, 1e9])
@pytest.mark.parametrize("budget", [{"usd": 0.1}, {"usd": 3.0}, {"trials": 90}])
def test_a_target_that_a_head_adds_takes_nothing_from_those_of_the_base(
    shards: int | None, gpu_usd: float, budget: dict[str, Any]
) -> None:
    alone = parts(3, 0, shards=shards, **budget)
    cpu, gpu = parts(3, 9, shards=shards, unmerged=["gpu"], gpu_usd=gpu_usd, **budget)
    assert (cpu.machine_seconds, cpu.trials) == (alone[0].machine_seconds, alone[0].trials)
    if "usd" in budget:
        assert present(cpu.usd) + present(gpu.usd) <= budget["usd"]
    is_left = shards is not None and budget.get("usd") == 3.0
    assert bool(gpu.seconds and (gpu.usd or gpu.trials)) == is_left
    (settled, gpu) = parts(0, 9, known=1, shards=shards, unmerged=["gpu"], **budget)
    assert (settled.usd, gpu.usd) == ((0.0, budget["usd"]) if "usd" in budget else (None, None))
    assert gpu.trials == (90 if "trials" in budget else None)


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
def test_a_model_is_far_behind_by_trusted_times(compiled: int, is_behind: bool) -> None:
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
        found = KnownStandings(shelf_with(known, 9_000, 1_000), ORIGIN, CANDIDATES)([base, head])
        assert found == frozenset()


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
    return make_plan(make_resolution(tasks, lookups))


def built(tvm_ms: float, other_ms: float) -> CellBuilds:
    times = (
        CandidateTime(candidate="tvm", title="TVM", ms=tvm_ms),
        CandidateTime(candidate="onnxruntime", title="ONNX Runtime", ms=other_ms),
    )
    head = msgspec.structs.replace(make_build(), choice=RuntimeChoice(times=times))
    return CellBuilds(cell=Cell(model="m.onnx", target="cpu"), base=None, head=head)


def found(tvm_ms: float, *outcomes: TaskOutcome) -> tuple[ModelStanding, ...]:
    plan = plan_of(tasks_of("done", "begun"))
    tuning = make_tuning(*outcomes, stopped="trials")
    return new_standings(plan, [tuning], [built(tvm_ms, 1.0)], CANDIDATES)


DONE = make_outcome("done", records=(make_record("done"),), best_ms=9.0)
BEGUN = make_outcome("begun", trials=4, best_ms=1.0)


def test_what_was_tuned_and_stays_slow_is_said_with_its_times() -> None:
    (standing,) = found(10.0, DONE, BEGUN)
    assert standing.key == model_keys(tasks_of("done", "begun"), __version__)[M]["head"]
    assert (standing.compiled_nanoseconds, standing.other_nanoseconds) == (10_000_000, 1_000_000)


def test_nothing_is_said_of_what_may_catch_up_is_finished_or_was_not_tuned() -> None:
    assert found(2.1, DONE, BEGUN) == ()
    assert found(10.0, DONE, msgspec.structs.replace(BEGUN, records=(make_record("begun"),))) == ()
    assert found(10.0) == ()


def share(*outcomes: TaskOutcome, known: tuple[str, ...] = ()) -> float:
    tasks = [ResolvedTask(make_task(outcome.name), Miss("absent")) for outcome in outcomes]
    by_key = {outcome.key: outcome for outcome in outcomes}
    return kept_share("m.onnx", tasks, by_key, {key_of(name) for name in known}, "llvm")


def test_a_long_search_keeps_what_more_of_it_would_not_save() -> None:
    assert 0.2 < share(make_outcome("long", trials=10 * MIN_TRIALS, best_ms=1.0)) < 1.0
    assert share(make_outcome("short", trials=MIN_TRIALS - 1, best_ms=1.0)) == 0.0


def test_what_an_earlier_run_finished_stays_as_well() -> None:
    task = ResolvedTask(make_task("old"), exact("old"))
    assert kept_share("m.onnx", [task], {}, {key_of("old")}, "llvm") == 1.0
    assert kept_share("m.onnx", [], {}, set(), "llvm") == 0.0
