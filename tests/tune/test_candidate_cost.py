from __future__ import annotations

from tunegate.artifacts.outcomes import CandidateCost
from tunegate.artifacts.tasks import ScheduleSource
from tunegate.tune.task_history import patience_seconds
from tunegate_cache.format.records import RecordStatus


def cost(
    build_seconds: float, status: RecordStatus = "ok", origin: ScheduleSource = "search"
) -> CandidateCost:
    return CandidateCost(
        stage="quick",
        origin=origin,
        pick="random",
        status=status,
        build_seconds=build_seconds,
        run_seconds=0.1,
        milliseconds=1.0,
        improved=False,
    )


def test_before_a_few_have_finished_a_candidate_may_take_what_its_place_allows() -> None:
    assert patience_seconds([]) is None
    assert patience_seconds([cost(0.5)] * 3) is None


def test_it_is_three_times_the_slowest_and_never_less_than_five_seconds() -> None:
    assert patience_seconds([cost(0.5)] * 4) == 5.0
    assert patience_seconds([*[cost(0.5)] * 3, cost(4.0)]) == 12.0


def test_neither_failures_nor_the_default_schedule_make_it_longer() -> None:
    others = [cost(19.0, status="timeout"), cost(19.0, origin="default")]
    assert patience_seconds([*[cost(0.5)] * 4, *others]) == 5.0
