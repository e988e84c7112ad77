from collections.abc import Sequence

import pytest
from msgspec.structs import replace

from tests.support import tuning_tasks
from tests.tune.test_batches import candidate, history, measured
from tunegate.artifacts.changes import Side
from tunegate.artifacts.plans import PlannedTask
from tunegate.artifacts.tasks import Claims, ResolvedTask, ScheduleSource
from tunegate.tune.claims import MIN_SAMPLES_BESIDE
from tunegate.tune.model_keys import known_schedules
from tunegate.tune.prior_results import schedule_of
from tunegate.tune.protocol import DEFAULT, Candidate, Measured, Schedule
from tunegate.tune.task_history import TaskHistory, heaviest_first
from tunegate_cache.format import records


def timed(number: int, nanoseconds: int) -> Measured:
    return Measured(number=number, status="ok", nanoseconds=(nanoseconds,))


def test_the_best_of_what_ran_is_the_outcome() -> None:
    task = history()
    task.is_started = True
    task.enter(candidate(task, 0), timed(0, 9000), 5)
    three, one, two = [task.enter(candidate(task, n), measured(n), 5) for n in (3, 1, 2)]
    found = task.outcome(task.reason_stopped("budget"))
    assert found.records[:3] == (one, two, three)
    assert (found.trials, found.stopped, found.source) == (3, "budget", "search")
    assert (found.before_ms, found.best_ms) == (0.009, 0.001001)


def test_transferred_schedules_that_do_not_fit_are_counted_and_fail_no_task() -> None:
    task = history()
    task.is_started = True
    task.note_proposal(0.5, misfits=2)
    assert task.reason_stopped("budget") == "not-started"
    found = task.outcome("budget")
    assert (found.failures, found.search_seconds, found.trials) == ({"misfit": 2}, 0.5, 0)


def test_a_default_schedule_that_is_near_is_measured_again_with_the_best() -> None:
    """The luckier one of two looks at equal schedules is the faster."""
    task = history()
    task.is_started = True
    task.enter(candidate(task, 0), timed(0, 1200), 5)
    for number in (1, 2, 3, 4, 5):
        task.enter(candidate(task, number), timed(number, 1000 + number), 5)
    task.note_batch(5, 1.0)
    again = task.finalists()
    assert [each.number for each in again] == [1, 2, 0]
    confirm(task, again, 0.0013, 0.00125, 0.0012)
    found = task.outcome("budget")
    assert (found.source, found.before_ms, found.best_ms) == ("default", 0.0012, 0.0012)


def test_of_many_alike_those_that_may_have_been_ahead_are_measured_again() -> None:
    task = history()
    for number in range(1, 129):
        task.enter(candidate(task, number), timed(number, 1000 + 20 * number), 5)
    task.note_batch(128, 1.0)
    assert [each.number for each in task.finalists()] == [1, 2, 3, 4]
    assert task.ties() == []
    confirm(task, task.finalists(), 0.0014, 0.0012, 0.00119, 0.00121)
    assert [each.number for each in task.ties()] == [3, 2, 4]


def history_of_two() -> TaskHistory:
    """The second of them takes twice as long."""
    task = history()
    for number in (1, 2):
        task.enter(candidate(task, number), timed(number, 100 * number), 5)
    return task


def test_what_is_measured_in_two_passes_has_the_times_of_both() -> None:
    task = history_of_two()
    one, _ = task.finalists()
    task.confirm(one, timed(one.number, 3000), 6)
    record = task.confirm(one, timed(one.number, 1000), 7)
    assert record.run_nanoseconds == (3000, 1000)
    assert record.median_ms == 0.002
    assert task.outcome("budget").best_ms == 0.002


def test_one_that_fails_when_it_is_measured_again_is_no_winner() -> None:
    task = history_of_two()
    one, two = task.finalists()
    task.confirm(two, timed(two.number, 210), 6)
    task.confirm(one, timed(one.number, 110), 6)
    task.confirm(one, Measured(number=one.number, status="wrong"), 7)
    assert task.outcome("budget").best_ms == 0.00021


TRUSTED = tuning_tasks.make_record("a")
CLAIM = replace(tuning_tasks.make_record("a", milliseconds=0.5), decisions=((3, (8,)),))
DEFAULT_MS = 9.0


def contested(
    lookup: records.Lookup, sides: tuple[Side, ...] = ("head",), trials: int = 0
) -> TaskHistory:
    claims = Claims((CLAIM,), is_searched=True)
    resolved = ResolvedTask(tuning_tasks.make_task("a", sides=sides), lookup, claims)
    return begin(PlannedTask(resolved=resolved, trials=trials, gain_ms=0.0))


def begin(planned: PlannedTask, most_trials: int | None = None) -> TaskHistory:
    """A task of which the default schedule is measured."""
    task = TaskHistory(
        planned,
        device=TRUSTED.device,
        toolchain=TRUSTED.toolchain,
        source=TRUSTED.source,
        most_trials=most_trials,
    )
    task.is_started = True
    task.enter(one(task, 0, DEFAULT, "default"), timed_ms(0, DEFAULT_MS), 5)
    return task


def one(task: TaskHistory, number: int, schedule: Schedule, origin: ScheduleSource) -> Candidate:
    return replace(candidate(task, number), schedule=schedule, origin=origin)


def timed_ms(number: int, milliseconds: float) -> Measured:
    return timed(number, round(milliseconds * 1e6))


def confirm(task: TaskHistory, pair: Sequence[Candidate], *milliseconds: float) -> None:
    for each, ms in zip(pair, milliseconds, strict=True):
        task.confirm(each, timed_ms(each.number, ms), 6)


def look(task: TaskHistory, trusted_ms: float, claimed_ms: float) -> list[Candidate]:
    """Both after a look."""
    pair = [
        one(task, 1, schedule_of(TRUSTED), "exact"),
        one(task, 2, schedule_of(CLAIM), "own-zone"),
    ]
    for each, milliseconds in zip(pair, (trusted_ms, claimed_ms), strict=True):
        task.enter(each, timed_ms(each.number, milliseconds), 5)
    task.note_batch(2, 1.0)
    return pair


def test_a_claim_that_is_slower_here_than_what_is_trusted_is_nobodys() -> None:
    task = contested(records.ExactHit((TRUSTED,)))
    confirm(task, look(task, 1.0, 0.9), 1.0, 3.0)
    found = task.outcome("finished")
    assert (found.source, found.best_ms) == ("exact", 1.0)
    assert schedule_of(found.records[0]) == schedule_of(TRUSTED)


def test_a_claim_that_is_faster_here_is_used() -> None:
    task = contested(records.ExactHit((TRUSTED,)))
    confirm(task, look(task, 1.0, 0.5), 1.0, 0.5)
    assert task.outcome("finished").source == "own-zone"


def test_what_is_trusted_is_measured_again_however_slow_it_looked() -> None:
    task = contested(records.ExactHit((TRUSTED,)))
    look(task, 8.0, 0.5)
    for number in (3, 4):
        fast = one(task, number, Schedule("t", ((1, (number,)),)), "own-zone")
        task.enter(fast, timed_ms(number, 0.5), 5)
    assert schedule_of(TRUSTED) in [each.schedule for each in task.finalists()]


def test_a_claim_that_did_not_run_beside_what_is_trusted_does_not_count() -> None:
    task = contested(records.ExactHit((TRUSTED,)))
    _, claim = look(task, 1.0, 0.5)
    task.confirm(claim, timed_ms(2, 0.5), 6)
    assert task.outcome("budget").records == (TRUSTED,)


def test_what_is_trusted_counts_as_it_ran_where_its_template_allows_no_such_decisions() -> None:
    task = contested(records.ExactHit((TRUSTED,)))
    mended = one(task, 1, Schedule(TRUSTED.template, ((1, (99,)),)), "exact")
    claim = one(task, 2, schedule_of(CLAIM), "own-zone")
    for each, ms in ((mended, 8.0), (claim, 0.5)):
        task.enter(each, timed_ms(each.number, ms), 5)
    task.note_batch(2, 1.0)
    assert mended.schedule in [each.schedule for each in task.finalists()]
    task.confirm(claim, timed_ms(2, 0.5), 6)
    assert task.outcome("finished").records == (TRUSTED,)
    task.confirm(mended, timed_ms(1, 8.0), 6)
    assert task.outcome("finished").source == "own-zone"


def test_without_time_for_a_claim_what_is_trusted_is_used() -> None:
    assert contested(records.ExactHit((TRUSTED,))).outcome("not-started").records == (TRUSTED,)


@pytest.mark.parametrize(
    ("claimed_ms", "samples", "is_ended"),
    [(0.5, MIN_SAMPLES_BESIDE - 1, False), (0.5, MIN_SAMPLES_BESIDE, True), (3.0, 99, False)],
)
def test_a_claim_that_samples_do_not_beat_ends_the_search_of_what_the_base_uses(
    claimed_ms: float, samples: int, is_ended: bool
) -> None:
    task = contested(records.Miss("absent"), ("base", "head"), trials=100)
    task.enter(one(task, 2, schedule_of(CLAIM), "own-zone"), timed_ms(2, claimed_ms), 5)
    for number in range(10, 10 + samples):
        sample = one(task, number, Schedule("t", ((1, (number,)),)), "search")
        task.enter(sample, timed_ms(number, 1.0), 5)
    task.note_batch(samples, 1.0)
    assert task.exhausted == is_ended


def test_a_default_schedule_is_no_answer_for_what_only_the_budget_left_out() -> None:
    task = history()
    assert not task.needs_default
    for is_unpaid in (False, True):
        task.planned = replace(task.planned, trials=0, is_unpaid=is_unpaid)
        assert task.needs_default == (not is_unpaid)


def short(limit: int = 4) -> TaskHistory:
    """A task of few trials whose default schedule takes 2 ms."""
    return begin(tuning_tasks.make_planned(tuning_tasks.make_task("a"), trials=4), limit)


def batch_of(task: TaskHistory, times_ms: tuple[float, ...], first: int = 1) -> None:
    """The more is expected of a candidate the later it comes."""
    for number, milliseconds in enumerate(times_ms, start=first):
        sample = one(task, number, Schedule("t", ((1, (number,)),)), "search")
        expected = replace(sample, expected=number / 100)
        task.enter(expected, timed_ms(number, milliseconds), 5)
    task.note_batch(len(times_ms), 1.0)


def test_a_task_of_few_trials_has_room_for_no_more() -> None:
    task = short()
    assert [task.room(in_flight) for in_flight in (0, 3, 4)] == [4, 1, 0]
    batch_of(task, (0.5, 0.4, 0.3, 0.2))
    assert (task.exhausted, task.reason_stopped("budget")) == (True, "finished")


def test_a_task_whose_trials_contradict_what_was_expected_goes_on_until_they_do_not() -> None:
    task = short()
    batch_of(task, (0.2, 0.3, 0.4, 0.5))
    assert (task.exhausted, task.room(0)) == (False, None)
    batch_of(task, (0.1, 0.09, 0.08, 0.07), first=5)
    assert task.exhausted


def test_a_task_that_few_trials_make_no_faster_is_finished_with_its_default_schedule() -> None:
    task = short()
    batch_of(task, (2 * DEFAULT_MS,) * 4)
    assert task.exhausted
    assert task.best_origin == "default"


def test_without_a_limit_a_task_has_room_for_any_number() -> None:
    assert history().room(100) is None


TASKS = [tuning_tasks.make_task("conv"), tuning_tasks.make_task("dense")]


def test_what_a_run_measured_is_what_the_next_one_finds_in_the_cache() -> None:
    conv, dense = tuning_tasks.exact("conv"), tuning_tasks.exact("dense")
    before = tuning_tasks.make_resolution(TASKS, [conv, records.Miss("absent")]).tasks
    after = tuning_tasks.make_resolution(TASKS, [conv, dense]).tasks
    tuned = tuning_tasks.make_outcome("dense", records=(tuning_tasks.make_record("dense"),))
    found = known_schedules(before, [tuning_tasks.make_tuning(tuned, stopped="trials")])
    assert found == known_schedules(after)
    assert known_schedules(before) != known_schedules(after)


# The re-election of schedules that an older toolchain knew.


def reelected(
    weight: int = 1, milliseconds: float = 1.0, before: tuple[records.TuningRecord, ...] = ()
) -> TaskHistory:
    older = tuning_tasks.make_record("a", milliseconds=milliseconds)
    resolved = ResolvedTask(
        tuning_tasks.make_task("a", weight=weight), records.ExactHit((*before, older))
    )
    return TaskHistory(
        PlannedTask(resolved=resolved, trials=0, gain_ms=0.0),
        device=tuning_tasks.DEVICE,
        toolchain=replace(older.toolchain, schedules="2"),
        source=older.source,
    )


def enter_confirmed(
    task: TaskHistory, number: int, nanoseconds: int, origin: ScheduleSource
) -> None:
    given = replace(candidate(task, number), origin=origin)
    times = (nanoseconds,) * records.CONFIRMED_REPEATS
    task.enter(given, Measured(number=number, status="ok", nanoseconds=times), 5)


def asked(
    default_nanoseconds: int, *before: records.TuningRecord, as_pair: bool = True
) -> TaskHistory:
    """The older schedule takes 1000 ns today."""
    task = reelected(before=before)
    task.is_started = True
    enter_confirmed(task, 1, 1000, "exact")
    if as_pair:
        enter_confirmed(task, 0, default_nanoseconds, "default")
        task.note_batch(1, 1.0)
    return task


def test_an_older_schedule_that_wins_is_kept_and_one_45_percent_slower_is_lost() -> None:
    kept, lost = asked(2000).outcome("finished"), asked(690).outcome("finished")
    assert (kept.older, kept.records[0].template) == ("kept", "t")
    assert (lost.older, lost.records[0].template) == ("lost", "")
    for record in (*kept.records, *lost.records):
        assert record.toolchain.schedules == "2"
    default = replace(tuning_tasks.make_record("a"), template="", decisions=())
    assert asked(690, default).outcome("finished").older == "still-lost"
    for default_ns, older in ((2000, "kept"), (690, "lost")):
        beside = asked(default_ns)
        enter_confirmed(beside, 2, 500, "own-zone")
        assert beside.outcome("finished").older == older


def test_one_that_the_default_was_not_timed_beside_is_not_asked_yet_and_costs_its_time() -> None:
    found = asked(2000, as_pair=False).outcome("finished")
    assert (found.older, found.source, found.stopped) == ("not-asked", "older", "budget")
    assert (found.trials, found.best_ms) == (1, None)
    disturbed = asked(2000)
    killed = Measured(number=2, status="runtime", from_outside=True)
    disturbed.enter(candidate(disturbed, 2), killed, 5)
    found = disturbed.outcome("finished")
    assert (found.older, found.stopped) == ("not-asked", "failed")
    left = reelected()
    assert left.outcome(left.reason_stopped("finished")).stopped == "budget"


def test_the_largest_share_of_the_model_is_asked_first() -> None:
    tasks = [reelected(1, 3.0), reelected(9, 1.0), reelected(2, 4.0)]
    assert heaviest_first(tasks) == [tasks[1], tasks[2], tasks[0]]
