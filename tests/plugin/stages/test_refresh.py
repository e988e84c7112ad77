from __future__ import annotations

from tests.plugin.stages.shelf import Shelf
from tests.support.tuning_tasks import exact, key_of, make_planned, make_task, transfer
from tunegate.artifacts.plans import Budget, PlannedTask, Shard
from tunegate.stages.refresh import refreshed
from tunegate_cache.format.records import Miss, TransferHit

CONV, DENSE = make_task("conv2d"), make_task("dense")


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
