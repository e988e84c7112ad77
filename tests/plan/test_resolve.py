"""Resolve against a real cache in a directory."""

from __future__ import annotations

import json
from pathlib import Path

import msgspec
import pytest

from tests.plan.shelf import Shelf
from tests.support.tuning_tasks import (
    SHAPE,
    exact,
    key_of,
    make_planned,
    make_record,
    make_task,
    make_task_set,
    transfer,
)
from tunegate.artifacts.plans import Budget, PlannedTask, Shard
from tunegate.artifacts.tasks import Claims, Resolution, ResolvedTask
from tunegate.config import BudgetConfig, CacheConfig, Config, ModelConfig, TargetConfig
from tunegate.plan.allocation import TargetPart, target_parts
from tunegate.plan.resolve import refreshed, resolve
from tunegate.system.cache.shared_cache import SharedCache
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


def test_what_the_cache_did_is_counted(tmp_path: Path) -> None:
    used = resolution(tmp_path).cache
    assert (used.exact, used.transfer, used.misses) == (1, 1, {"absent": 1})
    assert used.notes == ()


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


def shard(*tasks: PlannedTask) -> Shard:
    return Shard(
        index=0,
        target="cpu",
        labels=(),
        tasks=tasks,
        budget=Budget(seconds=60.0, trials=None),
        predicted_seconds=1.0,
    )


def test_a_task_that_a_killed_attempt_has_measured_starts_from_its_records() -> None:
    index = Shelf({key_of("conv2d"): exact("conv2d"), key_of("dense"): transfer()})
    found = refreshed(shard(make_planned(CONV), make_planned(DENSE)), index)
    conv, dense = (planned.resolved.lookup for planned in found.tasks)
    assert conv == TransferHit((key_of("conv2d"),), 0.0, exact("conv2d").records)
    assert dense == Miss("absent")
    assert [planned.trials for planned in found.tasks] == [8, 8]


def test_only_what_is_still_to_be_tuned_is_asked_for() -> None:
    index = Shelf({key_of("dense"): exact("dense")})
    done = make_planned(DENSE, exact("dense", milliseconds=9.0), trials=0)
    found = refreshed(shard(make_planned(CONV), done), index)
    assert index.asked == [key_of("conv2d")]
    assert found.tasks[1] == done


def test_a_shard_with_nothing_to_tune_asks_nothing() -> None:
    index, finished = Shelf(), shard(make_planned(CONV, exact(), trials=0))
    assert refreshed(finished, index) is finished
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
    cpu: int, gpu: int, *, shards: int | None = None, known: int = 0, **budget: float
) -> tuple[TargetPart, ...]:
    config = Config(
        models=(ModelConfig(path="*.onnx"),),
        targets=(CPU, GPU),
        budget=BudgetConfig(**budget),  # type: ignore[arg-type]  # trials is whole
    )
    tasks = [
        ResolvedTask(make_task(f"{target}{number}", target=target), Miss("absent"))
        for target, count in (("cpu", cpu), ("gpu", gpu))
        for number in range(count)
    ]
    tasks += [ResolvedTask(make_task(f"known{n}"), exact(f"known{n}")) for n in range(known)]
    return target_parts(tasks, config, shards=shards)


def test_trials_are_shared_by_the_tasks_left_to_tune() -> None:
    assert [part.trials for part in parts(3, 1, known=9, trials=100)] == [75, 25]


def test_side_by_side_each_has_all_the_minutes() -> None:
    assert [part.seconds for part in parts(1, 1, minutes=10, shards=2)] == [600, 600]


def test_money_buys_the_same_time_per_task_on_either_target() -> None:
    cpu, gpu = parts(1, 1, usd=10.0)
    assert (cpu.usd or 0) + (gpu.usd or 0) == pytest.approx(10.0)
    seconds = [(part.usd or 0) / (part.usd_per_hour or 1) for part in (cpu, gpu)]
    shares = [(part.seconds or 0) for part in (cpu, gpu)]
    assert seconds[0] / seconds[1] == pytest.approx(shares[0] / shares[1])


def test_the_whole_machine_time_is_that_of_all_its_shards() -> None:
    (part,) = parts(4, 0, minutes=10, shards=4)
    assert (part.shards, part.machine_seconds) == (4, 2400)


def test_no_target_gets_more_shards_than_it_has_tasks_to_tune() -> None:
    assert [part.shards for part in parts(2, 3, known=10, shards=64)] == [2, 3]


def test_every_target_gets_a_shard_even_if_fewer_were_asked_for() -> None:
    assert [part.shards for part in parts(2, 3, shards=1)] == [1, 1]
