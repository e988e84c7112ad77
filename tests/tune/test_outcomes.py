"""The outcome of a shard's tuning."""

from random import Random

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support import measured_cells
from tests.support.tuning_tasks import (
    DEVICE,
    exact,
    key_of,
    make_outcome,
    make_plan,
    make_planned,
    make_record,
    make_resolution,
    make_shard,
    make_task,
    make_tuning,
    transfer,
)
from tunegate.artifacts.outcomes import TaskOutcome, TuningOutcome
from tunegate.artifacts.plans import Budget, Cost, PlannedTask, TuningPlan
from tunegate.artifacts.tasks import RecordOrigin
from tunegate.ports import EnergyReading
from tunegate.tune.budget import EnergyUse, Spending
from tunegate.tune.claims import as_resumed, is_resumed, is_unfinished
from tunegate.tune.outcomes import (
    built_with_older,
    lost_shard_warnings,
    lost_shards,
    merge_outcomes,
    tally,
    unasked_tasks,
)
from tunegate.tune.tune_shard import final_outcomes, why_ended
from tunegate_cache.format.records import (
    CONFIRMED_REPEATS,
    DeviceFingerprint,
    ExactHit,
    Lookup,
    Miss,
    Provenance,
    Toolchain,
    TransferHit,
)

A_MINUTE = Budget(seconds=60, trials=100)


def ended(*tasks: TaskOutcome, seconds: float = 30, trials: int = 10) -> str:
    return why_ended(tasks, Spending(budget=A_MINUTE, seconds=seconds, trials=trials))


def test_every_planned_task_has_an_outcome_in_the_plans_order() -> None:
    planned = [make_planned(make_task(name)) for name in ("a", "b", "c")]
    outcomes = final_outcomes(planned, {key_of("b"): make_outcome("b")}, is_cancelled=False)
    expected = [("a", "not-started"), ("b", "converged"), ("c", "not-started")]
    assert [(o.name, o.stopped) for o in outcomes] == expected


def test_what_was_begun_when_cancelled_is_cancelled_and_keeps_its_best() -> None:
    planned = [make_planned(make_task(name)) for name in ("a", "b")]
    under_way = {key_of("a"): make_outcome("a", stopped="finished")}
    first, second = final_outcomes(planned, under_way, is_cancelled=True)
    assert (first.stopped, first.best_ms) == ("cancelled", 1.0)
    assert second.stopped == "not-started"


@pytest.mark.parametrize(
    ("seconds", "trials", "limit"),
    [(60.1, 10, "seconds"), (10, 100, "trials"), (58, 10, "seconds"), (10, 97, "trials")],
)
def test_a_run_cut_short_names_the_limit_it_reached_or_was_near(
    seconds: float, trials: int, limit: str
) -> None:
    assert ended(make_outcome(stopped="budget"), seconds=seconds, trials=trials) == limit


def test_a_run_ends_for_the_reason_that_counts_most_for_its_tasks() -> None:
    converged, untouched = make_outcome("a"), make_outcome("b", stopped="not-started", trials=0)
    assert ended(converged, untouched, seconds=61) == "seconds"
    assert ended(converged, untouched, seconds=10) == "converged"
    assert ended(untouched, seconds=55, trials=0) == "seconds"  # most of its time, for nothing
    assert ended(untouched, seconds=3, trials=0) == "finished"
    tried_all = make_outcome("c", stopped="finished")
    assert (ended(tried_all), ended(tried_all, converged)) == ("finished", "converged")
    failed = make_outcome("d", stopped="failed", best_ms=None)
    assert (ended(failed), ended(failed, converged)) == ("failed", "converged")
    assert ended(make_outcome("e", stopped="exact", trials=0)) == "finished"  # by the cache alone


# Joules by the counters of a machine.


class HandCounter:
    """A counter that a test moves, and silences."""

    def __init__(self, joules: float = 0.0) -> None:
        self.now: float | None = joules

    def reading(self) -> EnergyReading | None:
        return None if self.now is None else EnergyReading(self.now, "rapl")


@pytest.mark.parametrize(("later", "used"), [(530.0, (30.0, "rapl")), (None, (None, None))])
def test_what_is_used_from_the_beginning_on_counts_unless_the_counter_falls_silent(
    later: float | None, used: tuple[float | None, str | None]
) -> None:
    counter = HandCounter(500.0)
    use = EnergyUse(counter)
    counter.now = later
    assert use.total() == used


# What an earlier run has confirmed is an answer; what it has only measured quickly is a start.

KEY = key_of("conv2d")
OTHER = DeviceFingerprint(name="another", kind="cpu", units=2, memory_bytes=1)
DEFAULT = msgspec.structs.replace(make_record(times=1), template="", decisions=())


@given(st.lists(st.integers(1, 2 * CONFIRMED_REPEATS), min_size=1, max_size=8))
def test_one_careful_measurement_is_enough(times: list[int]) -> None:
    lookup = ExactHit(tuple(make_record(times=count) for count in times))
    assert is_unfinished(lookup) == (max(times) < CONFIRMED_REPEATS)


def test_a_task_too_small_to_search_is_finished_by_its_default_schedule() -> None:
    assert not is_unfinished(ExactHit((DEFAULT,)))
    assert is_unfinished(ExactHit((make_record(times=3), DEFAULT)))


def test_a_default_schedule_that_was_measured_with_care_beside_others_is_an_answer() -> None:
    confirmed = msgspec.structs.replace(DEFAULT, run_nanoseconds=(5,) * CONFIRMED_REPEATS)
    assert not is_unfinished(ExactHit((confirmed, make_record(times=3))))


def test_what_another_device_has_measured_with_care_is_no_answer_for_this_one() -> None:
    theirs = msgspec.structs.replace(make_record(), device=OTHER)
    assert is_unfinished(ExactHit((make_record(times=3), theirs)))
    assert not is_unfinished(ExactHit((theirs, make_record(times=3))))


def test_its_own_records_are_where_the_search_goes_on_and_what_failed_is_not_tried_again() -> None:
    quick, failed = make_record(times=3), make_record("failed")
    found = as_resumed(KEY, ExactHit((quick,), (failed,)))
    assert found == TransferHit((KEY,), 0.0, (quick,), (failed,))
    assert is_resumed(KEY, found)
    assert not is_resumed(KEY, transfer())


def test_every_other_answer_stays_as_it_is() -> None:
    for lookup in (Miss("absent"), transfer(), ExactHit((make_record(),))):
        assert as_resumed(KEY, lookup) is lookup


# Merging outcomes: in any order, any number of times, and nothing is lost.

NAMES = ("a", "b", "c")


def attempt(*tasks: TaskOutcome, shard: int = 0, seconds: float = 10.0) -> TuningOutcome:
    return make_tuning(*tasks, shard=shard, spent=Cost(seconds=seconds))


times = st.none() | st.floats(0.1, 10)
task_outcomes = st.builds(
    lambda name, best_ms, trials, at: make_outcome(
        name, best_ms=best_ms, trials=trials, records=(make_record(name, at=at),)
    ),
    st.sampled_from(NAMES),
    times,
    st.integers(0, 3),
    st.integers(1, 3),
)
attempts = st.lists(
    st.builds(
        lambda tasks, shard, seconds: attempt(*tasks, shard=shard, seconds=seconds),
        st.lists(task_outcomes, max_size=3, unique_by=lambda task: task.name),
        st.integers(0, 2),
        st.sampled_from([1.0, 2.0]),
    ),
    max_size=6,
)


@given(attempts, st.randoms(use_true_random=False))
def test_the_order_does_not_matter(outcomes: list[TuningOutcome], random: Random) -> None:
    shuffled = list(outcomes)
    random.shuffle(shuffled)
    assert merge_outcomes(shuffled) == merge_outcomes(outcomes)


@given(attempts)
def test_the_same_outcome_twice_changes_nothing(outcomes: list[TuningOutcome]) -> None:
    assert merge_outcomes([*outcomes, *outcomes]) == merge_outcomes(outcomes)


@given(attempts)
def test_no_task_and_no_record_is_lost(outcomes: list[TuningOutcome]) -> None:
    def records(of: tuple[TuningOutcome, ...]) -> set[object]:
        return {(o.shard, record) for o in of for task in o.tasks for record in task.records}

    assert records(merge_outcomes(outcomes)) == records(tuple(outcomes))


def test_each_task_has_the_best_of_all_attempts() -> None:
    first = attempt(make_outcome("a", best_ms=2.0), make_outcome("b", best_ms=5.0))
    second = attempt(make_outcome("a", best_ms=3.0), make_outcome("b", best_ms=4.0), seconds=20.0)
    (merged,) = merge_outcomes([first, second])
    assert {task.name: task.best_ms for task in merged.tasks} == {"a": 2.0, "b": 4.0}
    assert merged.spent.seconds == 20.0


REASONS = ["finished", "seconds", "usd", "trials", "cancelled", "failed"]


def four_tasks(usd_per_hour: float | None = None) -> TuningPlan:
    tasks = [make_task(name) for name in "abcd"]
    found: list[Lookup] = [exact("a"), exact("b"), transfer(), Miss("absent")]
    budget = Budget(seconds=60.0, trials=None, usd_per_hour=usd_per_hour)
    return make_plan(make_resolution(tasks, found), budget=budget)


def shard(index: int, stopped: str = "finished", usd: float | None = None) -> TuningOutcome:
    tasks = (make_outcome("c", trials=3), make_outcome("d", trials=4))
    spent = Cost(seconds=10.0, usd=usd)
    return make_tuning(*tasks, shard=index, spent=spent, stopped=stopped)


def test_with_a_price_no_tuning_costs_nothing_and_without_one_nothing_is_said() -> None:
    assert tally(four_tasks(usd_per_hour=3.6), ()).usd == 0
    assert tally(four_tasks(), [shard(0)]).usd is None


def test_without_a_plan_nothing_was_done() -> None:
    told = tally(None, ())
    assert (told.tasks, told.trials, told.stopped) == (0, 0, "finished")


shards = st.lists(st.builds(shard, st.integers(0, 5), st.sampled_from(REASONS)), max_size=6)


@given(shards)
def test_an_outcome_that_came_twice_counts_once(outcomes: list[TuningOutcome]) -> None:
    once = list({outcome.shard: outcome for outcome in outcomes}.values())
    assert tally(four_tasks(), [*once, *once]) == tally(four_tasks(), once)


@given(shards)
def test_finished_is_said_only_when_every_shard_finished(outcomes: list[TuningOutcome]) -> None:
    once = list({outcome.shard: outcome for outcome in outcomes}.values())
    is_finished = all(outcome.stopped == "finished" for outcome in once)
    assert (tally(four_tasks(), once).stopped == "finished") == is_finished


def test_a_shard_that_left_no_outcome_is_told_and_one_with_nothing_to_do_is_not() -> None:
    tasks = four_tasks().resolution.tasks
    planned = [PlannedTask(resolved=task, trials=4, gain_ms=1.0) for task in tasks[2:]]
    idle = [PlannedTask(resolved=tasks[0], trials=0, gain_ms=0.0)]
    of_each = enumerate([planned, planned[:1], idle])
    shards = tuple(make_shard(*its, index=index) for index, its in of_each)
    plan = msgspec.structs.replace(four_tasks(), shards=shards)
    assert [shard.index for shard in lost_shards(plan, [shard(1)])] == [0]
    assert tally(plan, [shard(1)]).stopped == "lost"
    (line,) = lost_shard_warnings(plan, [shard(1)])
    assert line.startswith("shard 0 on cpu left no outcome-0.json: its 2 tasks were not tuned")
    assert tally(plan, [shard(0), shard(1)]).stopped == "finished"


def test_what_no_job_has_asked_of_an_older_toolchain_is_counted() -> None:
    tasks = [measured_cells.make_task(name, 1.0, source="older") for name in ("c", "e")]
    build = measured_cells.make_build(tasks=(*tasks, measured_cells.make_task("f", 1.0)))
    unasked = built_with_older([measured_cells.make_builds(None, build)])
    assert tally(four_tasks(), (), unasked).not_asked == 2
    asked = make_outcome("c", key=tasks[0].key)
    told = msgspec.structs.replace(shard(0), tasks=(asked,))
    assert tally(four_tasks(), [told], unasked).not_asked == 1
    origin = RecordOrigin(
        device=DEVICE, toolchain=Toolchain(tvm="new", ffi=""), source=Provenance()
    )
    hits = [x for x in four_tasks().resolution.tasks if isinstance(x.lookup, ExactHit)]
    assert unasked_tasks(four_tasks(), origin) == {(x.task.key, x.task.target) for x in hits}


def test_what_both_sides_share_and_nobody_has_finished_waits() -> None:
    plan = four_tasks()
    skipped = [msgspec.structs.replace(each, skipped="shared") for each in plan.resolution.tasks]
    resolution = msgspec.structs.replace(plan.resolution, tasks=tuple(skipped))
    assert tally(plan, ()).waiting == 0
    assert tally(msgspec.structs.replace(plan, resolution=resolution), ()).waiting == 2


def test_joules_are_summed_where_all_are_known() -> None:
    counted = Cost(seconds=10.0, joules=400.0, energy_source="rapl")
    of_both = [msgspec.structs.replace(shard(number), spent=counted) for number in (0, 1)]
    told = tally(four_tasks(), of_both)
    assert (told.joules, told.energy_source) == (800.0, "rapl")
    assert tally(four_tasks(), [shard(0)]).joules is None
