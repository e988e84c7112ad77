from __future__ import annotations

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from tests.support.tuning_tasks import (
    CHANGES,
    DEVICE,
    exact,
    make_outcome,
    make_resolution,
    make_task,
    transfer,
)
from tunegate.artifacts.outcomes import TuningOutcome
from tunegate.artifacts.plans import Budget, Cost, PlannedTask, Shard, TuningPlan
from tunegate.tune.outcomes import lost_shard_warnings, lost_shards, tally
from tunegate_cache.format.records import Lookup, Miss

REASONS = ["finished", "seconds", "usd", "trials", "cancelled", "failed"]


def make_plan(usd_per_hour: float | None = None) -> TuningPlan:
    tasks = [make_task(name) for name in "abcd"]
    found: list[Lookup] = [exact("a"), exact("b"), transfer(), Miss("absent")]
    return TuningPlan(
        changes=CHANGES,
        resolution=make_resolution(tasks, found),
        shards=(),
        budget=Budget(seconds=60.0, trials=None, usd_per_hour=usd_per_hour),
        estimate=Cost(seconds=1.0),
    )


def shard(index: int, stopped: str = "finished", usd: float | None = None) -> TuningOutcome:
    return TuningOutcome(
        shard=index,
        target="cpu",
        tasks=(make_outcome("c", trials=3), make_outcome("d", trials=4)),
        spent=Cost(seconds=10.0, usd=usd),
        device=DEVICE,
        stopped=stopped,  # type: ignore[arg-type]  # drawn from its literals
    )


def test_hits_are_counted_by_what_the_cache_said() -> None:
    told = tally(make_plan(), ())
    assert (told.tasks, told.exact, told.transfer, told.miss) == (4, 2, 1, 1)
    assert (told.trials, told.seconds, told.usd, told.stopped) == (0, 0.0, None, "finished")


def test_shards_add_up() -> None:
    told = tally(make_plan(), [shard(0, usd=0.25), shard(1, usd=0.5)])
    assert (told.trials, told.seconds, told.usd) == (14, 20.0, 0.75)


def test_with_a_price_no_tuning_costs_nothing_and_without_one_nothing_is_said() -> None:
    assert tally(make_plan(usd_per_hour=3.6), ()).usd == 0
    assert tally(make_plan(), [shard(0)]).usd is None


def test_without_a_plan_nothing_was_done() -> None:
    told = tally(None, ())
    assert (told.tasks, told.trials, told.stopped) == (0, 0, "finished")


shards = st.lists(st.builds(shard, st.integers(0, 5), st.sampled_from(REASONS)), max_size=6)


@given(shards)
def test_an_outcome_that_came_twice_counts_once(outcomes: list[TuningOutcome]) -> None:
    once = list({outcome.shard: outcome for outcome in outcomes}.values())
    assert tally(make_plan(), [*once, *once]) == tally(make_plan(), once)


@given(shards)
def test_finished_is_said_only_when_every_shard_finished(outcomes: list[TuningOutcome]) -> None:
    once = list({outcome.shard: outcome for outcome in outcomes}.values())
    is_finished = all(outcome.stopped == "finished" for outcome in once)
    assert (tally(make_plan(), once).stopped == "finished") == is_finished


def test_a_shard_that_left_no_outcome_is_told_and_one_with_nothing_to_do_is_not() -> None:
    tasks = make_plan().resolution.tasks
    planned = [PlannedTask(resolved=task, trials=4, gain_ms=1.0) for task in tasks[2:]]
    idle = [PlannedTask(resolved=tasks[0], trials=0, gain_ms=0.0)]
    plan = msgspec.structs.replace(
        make_plan(),
        shards=tuple(
            Shard(
                index=index,
                target="cpu",
                labels=(),
                tasks=tuple(its),
                budget=Budget(seconds=60.0, trials=None),
                predicted_seconds=1.0,
            )
            for index, its in enumerate([planned, planned[:1], idle])
        ),
    )
    assert [shard.index for shard in lost_shards(plan, [shard(1)])] == [0]
    assert tally(plan, [shard(1)]).stopped == "lost"
    (line,) = lost_shard_warnings(plan, [shard(1)])
    assert line.startswith("shard 0 on cpu left no outcome-0.json: its 2 tasks were not tuned")
    assert tally(plan, [shard(0), shard(1)]).stopped == "finished"


def test_what_both_sides_share_and_nobody_has_finished_waits() -> None:
    plan = make_plan()
    skipped = [msgspec.structs.replace(each, skipped="shared") for each in plan.resolution.tasks]
    resolution = msgspec.structs.replace(plan.resolution, tasks=tuple(skipped))
    assert tally(plan, ()).waiting == 0
    assert tally(msgspec.structs.replace(plan, resolution=resolution), ()).waiting == 2


def test_joules_are_summed_where_all_are_known() -> None:
    first, second = shard(0), shard(1)
    counted = Cost(seconds=10.0, joules=400.0, energy_source="rapl")
    told = tally(
        make_plan(),
        [
            msgspec.structs.replace(first, spent=counted),
            msgspec.structs.replace(second, spent=counted),
        ],
    )
    assert (told.joules, told.energy_source) == (800.0, "rapl")
    assert tally(make_plan(), [first]).joules is None
