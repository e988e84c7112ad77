"""The improvement curve, its noise and its plateaus."""

import math

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.models.squeezenet import TASKS
from tests.support.outcome_parts import outcome
from tests.support.tuning_tasks import key_of, make_outcome, make_record, make_task
from tunegate.artifacts.changes import Side
from tunegate.artifacts.outcomes import TaskOutcome
from tunegate.artifacts.tasks import TaskUse, TuningTask
from tunegate.tune import headroom, improvement, task_history
from tunegate.tune.expected_time import is_shared, paying_sides
from tunegate.tune.next_task import Work, roofline_gaps
from tunegate.tune.revalidation import Challenge, challenges, result_of
from tunegate_cache.format.records import DeviceFingerprint, ExactHit, Miss, TuningRecord


def history(
    *best_ms: float | None, trials: int = 16, seconds: float = 8.0
) -> tuple[improvement.MeasuredBatch, ...]:
    return tuple(
        improvement.MeasuredBatch(trials=trials, seconds=seconds, best_ms=ms) for ms in best_ms
    )


def gain(
    past: tuple[improvement.MeasuredBatch, ...],
    candidates: int = 16,
    headroom: float = 0.9,
    pace: improvement.Pace = improvement.FROM_NOTHING,
    behind: float = 0.0,
) -> float:
    return improvement.expected_gain(
        past, candidates, headroom=headroom, noise=0.01, pace=pace, roofline_gap=behind
    )


def test_the_first_batch_is_expected_to_gain_all_the_room() -> None:
    assert gain((), headroom=0.7) == 0.7


def test_a_task_that_keeps_improving_promises_more_than_one_that_stopped() -> None:
    assert gain(history(10, 8, 6, 5)) > gain(history(10, 8, 8, 8)) > 0


def test_a_search_that_knows_where_to_begin_promises_little_more_unless_far_behind() -> None:
    past = history(10, 8)
    assert gain(past, pace=improvement.INFORMED) < 0.5 * gain(past)
    assert gain(past, pace=improvement.INFORMED, behind=1.5) > 2 * gain(
        past, pace=improvement.INFORMED
    )


def test_a_task_whose_candidates_all_fail_promises_less_and_less() -> None:
    assert gain(history(None)) > gain(history(None, None)) > gain(history(None, None, None))


@given(
    st.lists(st.floats(0.001, 1e4), min_size=0, max_size=20), st.integers(1, 64), st.floats(0.01, 1)
)
def test_a_gain_is_a_share_of_room(times: list[float], candidates: int, headroom: float) -> None:
    falling = sorted(times, reverse=True)
    assert 0 <= gain(history(*falling), candidates, headroom) <= headroom


@given(st.lists(st.floats(0.001, 1e4), min_size=1, max_size=20), st.integers(1, 63))
def test_more_candidates_never_promise_less(times: list[float], candidates: int) -> None:
    past = history(*sorted(times, reverse=True))
    assert gain(past, candidates) <= gain(past, candidates + 1) + 1e-12


def plateaued(*best_ms: float | None) -> bool:
    return improvement.is_plateaued(history(*best_ms), noise=0.01, warm_up=2, patience=3)


def test_three_batches_without_improvement_beyond_the_noise_are_a_plateau() -> None:
    assert plateaued(10, 5, 5, 5, 5)
    assert plateaued(10, 5, 5, 5, 4.98)
    assert not plateaued(10, 5, 5, 5, 4)


def test_batches_without_candidates_do_not_stop_the_arithmetic() -> None:
    empty = history(None, trials=0)
    assert gain(empty) == pytest.approx(0.9)
    assert improvement.seconds_per_candidate([empty]) == 0.5


def test_default_schedules_come_once_for_each_task() -> None:
    one = improvement.MeasuredBatch(trials=2, seconds=1.0, best_ms=1.0, default_seconds=3.0)
    other = improvement.MeasuredBatch(trials=2, seconds=1.0, best_ms=1.0, default_seconds=1.0)
    assert improvement.seconds_of_a_default([(one, *history(1.0)), (), (other,)]) == 2.0
    assert improvement.seconds_of_a_default([(), ()]) == 0.0


TASK = make_task()


def schedule(number: int, milliseconds: float, *, device: str = "a machine") -> TuningRecord:
    record = make_record(milliseconds=milliseconds)
    kind = DeviceFingerprint(name=device, kind="cpu", units=2, memory_bytes=8 << 30)
    return msgspec.structs.replace(record, decisions=((3, (number, 1)),), device=kind)


THEIRS, OURS, DEFAULT = schedule(1, 1.0), schedule(2, 2.0), make_record()
STANDING = Challenge(task=TASK, challengers=(THEIRS,), incumbent=OURS)


def measured(*records: TuningRecord, before_ms: float = 10.0) -> TaskOutcome:
    return make_outcome(records=records, before_ms=before_ms)


def status(*records: TuningRecord, before_ms: float = 10.0) -> str:
    promotion, winner = result_of(STANDING, measured(*records, before_ms=before_ms))
    assert (winner is not None) == (promotion.status == "taken")
    return promotion.status


def test_only_schedules_that_main_does_not_have_stand_and_only_the_best_few() -> None:
    theirs = ExactHit(tuple(schedule(number, float(number)) for number in range(1, 6)))
    (standing,) = challenges([TASK], {TASK.key: theirs}, {TASK.key: ExactHit((OURS,))})
    assert [r.decisions[0][1][0] for r in standing.challengers] == [1, 3]
    assert standing.incumbent == OURS
    assert challenges([TASK], {TASK.key: theirs}, {TASK.key: theirs}) == ()
    assert challenges([TASK], {TASK.key: Miss("absent")}, {}) == ()


@pytest.mark.parametrize(
    ("theirs_ms", "ours_ms", "default_ms", "expected"),
    [
        (1.0, 2.0, 10.0, "taken"),
        (2.0, 2.0, 10.0, "slower"),
        (3.0, 2.0, 10.0, "slower"),
        (1.0, 2.0, 1.0, "slower"),
    ],
)
def test_a_schedule_must_beat_what_main_has_and_no_schedule_at_all(
    theirs_ms: float, ours_ms: float, default_ms: float, expected: str
) -> None:
    records = (schedule(1, theirs_ms), schedule(2, ours_ms))
    assert status(*records, before_ms=default_ms) == expected


def test_what_did_not_run_is_rejected_and_what_was_not_tried_is_said_so() -> None:
    assert status(schedule(2, 2.0)) == "rejected"
    died = make_outcome(failures={"runtime": 2}, detail="the worker ended (SIGSEGV)", before_ms=9.0)
    assert result_of(STANDING, died)[0].reason == "runtime: the worker ended (SIGSEGV)"
    promotion, winner = result_of(STANDING, None)
    assert (promotion.status, winner) == ("not-measured", None)
    stopped = make_outcome(stopped="not-started")
    assert result_of(STANDING, stopped)[0].status == "not-measured"


@pytest.mark.parametrize(
    ("measured_ms", "device", "is_implausible"),
    [(1.2, "a machine", False), (1.5, "a machine", True), (1.5, "another machine", False)],
)
def test_a_claim_is_held_against_its_writer_only_on_the_same_kind_of_device(
    measured_ms: float, device: str, is_implausible: bool
) -> None:
    promotion, _ = result_of(STANDING, measured(schedule(1, measured_ms, device=device)))
    assert (promotion.claimed_ms, promotion.is_implausible) == (1.0, is_implausible)
    assert promotion.key == key_of("conv2d")


# A winner is believed among those that may have been ahead of it.

times = st.lists(st.floats(0.01, 100.0), max_size=40).map(sorted)
trials = st.integers(0, 5000)


@given(times, trials)
def test_there_are_two_at_least_and_eight_at_most(found: list[float], count: int) -> None:
    number = task_history.finalist_count(found, count)
    assert (
        min(task_history.MIN_FINALISTS, len(found))
        <= number
        <= min(task_history.MAX_FINALISTS, len(found))
    )


@given(times, trials)
def test_what_is_far_behind_is_not_measured_again_beyond_the_first_two(
    found: list[float], count: int
) -> None:
    chosen = found[task_history.MIN_FINALISTS : task_history.finalist_count(found, count)]
    assert all(each <= task_history.TIE_RATIO * found[0] for each in chosen)


def test_only_what_is_not_told_apart_is_measured_once_more() -> None:
    assert task_history.tie_count([1.0, 1.05, 1.09, 1.2]) == 3
    assert task_history.tie_count([1.0, 1.2]) == 0
    assert task_history.tie_count([1.0]) == 0
    assert task_history.tie_count([]) == 0


def tuned(trials: int, before_ms: float = 4.0, best_ms: float = 1.0) -> TaskOutcome:
    row = msgspec.structs.replace(TASKS[0], source="search", trials=trials, stopped="budget")
    (task,) = outcome((row,)).tasks
    return msgspec.structs.replace(task, before_ms=before_ms, best_ms=best_ms)


def test_what_was_never_tuned_is_expected_to_gain_like_what_was() -> None:
    tasks = [tuned(8, best_ms=best_ms) for best_ms in (1.0, 2.0, 3.0)]
    assert headroom.of_untuned(10.0, tasks) == pytest.approx(5.0)
    assert headroom.of_untuned(10.0, [tuned(0)]) is None
    assert headroom.of_untuned(10.0, []) is None


@given(st.integers(1, 200), st.floats(0.01, 100))
def test_more_of_the_same_gives_back_a_part_and_never_all(trials: int, now_ms: float) -> None:
    assert 0 < headroom.of_unfinished(now_ms, tuned(trials)) < now_ms
    assert 0 < headroom.of_transferred(now_ms) < now_ms


def test_a_search_without_a_history_is_taken_at_its_trials() -> None:
    assert 0.1 < headroom.of_unfinished(1.0, msgspec.structs.replace(tuned(8), costs=())) < 0.3


# A roofline drawn by the tasks of the run themselves.

works = st.lists(
    st.builds(
        Work, st.floats(0, 1e12), st.floats(0, 1e9), st.one_of(st.none(), st.floats(1e-4, 1e4))
    ),
    max_size=20,
)


def test_the_fastest_task_is_behind_nobody() -> None:
    expected = [0.0, pytest.approx(math.log(4))]
    assert roofline_gaps([Work(1e9, 0, 10.0), Work(1e9, 0, 40.0)]) == expected


def test_what_moves_many_bytes_is_measured_by_bytes() -> None:
    copying = Work(0, 4e6, 1.0)
    expected = [0.0, 0.0, pytest.approx(math.log(4))]
    assert roofline_gaps([Work(1e9, 1e6, 10.0), copying, Work(0, 1e6, 1.0)]) == expected


def test_of_a_task_without_a_time_nothing_is_known() -> None:
    assert roofline_gaps([Work(1e9, 0, None), Work(1e9, 0, 1.0)]) == [0.0, 0.0]


@given(works)
def test_no_gap_is_infinite(tasks: list[Work]) -> None:
    assert all(math.isfinite(gap) for gap in roofline_gaps(tasks))


@given(works, st.floats(0.001, 1000))
def test_a_machine_that_is_slower_in_all_changes_nothing(tasks: list[Work], factor: float) -> None:
    slower = [w._replace(best_ms=w.best_ms and w.best_ms * factor) for w in tasks]
    assert roofline_gaps(slower) == pytest.approx(roofline_gaps(tasks), abs=1e-6)


def used_by(*uses: tuple[str, Side]) -> TuningTask:
    made = [TaskUse(model=model, side=side, weight=1, name="conv") for model, side in uses]
    return msgspec.structs.replace(make_task(), uses=tuple(made))


def test_what_both_sides_of_a_model_have_is_shared() -> None:
    assert is_shared(used_by(("m", "base"), ("m", "head")))


@pytest.mark.parametrize(
    ("base", "head", "paying"), [(1, 0, "base"), (0, 1, "head"), (3, 2, "base"), (2, 3, "head")]
)
def test_the_side_that_runs_a_layer_more_often_pays(base: int, head: int, paying: Side) -> None:
    """One of three equal layers was changed: its new form is tuned, so the old one must be."""
    of_base, of_head = [("m", "base")] * base, [("m", "head")] * head
    assert paying_sides(used_by(*of_base, *of_head)) == (("m", paying),)  # type: ignore[arg-type]
