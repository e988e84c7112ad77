from __future__ import annotations

import msgspec

from tests.support.tuning_tasks import (
    DEVICE,
    exact,
    make_outcome,
    make_record,
    make_resolution,
    make_task,
    transfer,
)
from tunegate.artifacts.changes import Side
from tunegate.artifacts.outcomes import TuningOutcome
from tunegate.artifacts.plans import Cost
from tunegate.tune.model_keys import ModelOnTarget, known_schedules
from tunegate_cache.format.records import Miss

HEAD: tuple[ModelOnTarget, Side] = (("m.onnx", "cpu"), "head")
ABSENT = Miss("absent")
TASKS = [make_task("conv"), make_task("dense")]


def outcome_of(name: str) -> TuningOutcome:
    return TuningOutcome(
        shard=0,
        target="cpu",
        tasks=(make_outcome(name, records=(make_record(name),), best_ms=1.0),),
        spent=Cost(seconds=1.0),
        device=DEVICE,
        stopped="trials",
    )


def test_what_a_run_measured_is_what_the_next_one_finds_in_the_cache() -> None:
    before = make_resolution(TASKS, [exact("conv"), Miss("absent")]).tasks
    after = make_resolution(TASKS, [exact("conv"), exact("dense")]).tasks
    assert known_schedules(before, [outcome_of("dense")]) == known_schedules(after)
    assert known_schedules(before) != known_schedules(after)


def test_what_was_measured_without_a_trial_counts_too() -> None:
    """A task that is too small to search is measured once, and is in the cache from then on."""
    (outcome,) = outcome_of("dense").tasks
    tasks = (msgspec.structs.replace(outcome, trials=0),)
    once = msgspec.structs.replace(outcome_of("dense"), tasks=tasks)
    before = make_resolution(TASKS, [exact("conv"), Miss("absent")]).tasks
    after = make_resolution(TASKS, [exact("conv"), exact("dense")]).tasks
    assert known_schedules(before, [once]) == known_schedules(after)


def test_a_neighbours_schedule_does_not_count_since_the_first_run_had_none() -> None:
    resolved = make_resolution(TASKS[:1], [transfer()]).tasks
    (outcome,) = outcome_of("dense").tasks
    untuned = msgspec.structs.replace(outcome, key=TASKS[0].key, trials=0)
    done = msgspec.structs.replace(outcome_of("dense"), tasks=(untuned,))
    assert known_schedules(resolved, [done]) == known_schedules(resolved)
    assert known_schedules(resolved) == known_schedules(make_resolution(TASKS[:1], [ABSENT]).tasks)


def test_each_task_that_has_a_schedule_counts_where_it_is_used() -> None:
    resolved = make_resolution(TASKS, [exact("conv"), Miss("absent")]).tasks
    ((where, ((workload, weight, schedule),)),) = known_schedules(resolved).items()
    assert (where, workload, weight) == (HEAD, TASKS[0].key.workload, 1)
    assert len(schedule) == 64


def test_a_model_that_was_refused_is_as_it_is_in_the_next_run() -> None:
    """The plan of the first run leaves out its tasks."""
    assert known_schedules(()) == known_schedules(make_resolution(TASKS, [ABSENT, ABSENT]).tasks)
