from __future__ import annotations

import pytest

from tests.support.tuning_tasks import exact, key_of, make_outcome, make_task
from tunegate.artifacts.outcomes import TaskOutcome
from tunegate.artifacts.tasks import ResolvedTask
from tunegate.plan.far_behind import MIN_TRIALS, is_far_behind, kept_share
from tunegate_cache.format.records import Miss


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
