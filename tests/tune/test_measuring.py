"""The way from candidates to finished batches, with results that are given here."""

from __future__ import annotations

from pathlib import Path

from tests.tune.test_batches import candidate, history
from tunegate.tune.batches import OpenBatches
from tunegate.tune.candidate_requests import CandidateMeasurements, ResultEffect
from tunegate.tune.parallel_measurement import Parallelism
from tunegate.tune.protocol import Measure, Measured
from tunegate.tune.task_history import TaskHistory
from tunegate_cache.format.records import CONFIRMED_REPEATS


class Run:
    """A run of one task; `first` is how many are timed at once from the beginning."""

    def __init__(self, directory: Path, first: int) -> None:
        self.task: TaskHistory = history()
        self.parallelism = Parallelism(4, first)
        self.batches = OpenBatches([self.task.workload])
        self.measuring = CandidateMeasurements(self.batches, directory, self.parallelism, 1)

    def start(self, count: int) -> list[Measure]:
        return self.measuring.start(self.task, [candidate(self.task, n) for n in range(count)])

    def take(self, requests: list[Measure], nanoseconds: int) -> ResultEffect:
        taken = ResultEffect([], None)
        for request in requests:
            taken = self.measuring.take(request, result(request, nanoseconds), 5)
        return taken


def result(request: Measure, nanoseconds: int) -> Measured:
    number = request.candidate.number
    times = (nanoseconds + 1000 * number,)
    return Measured(number=number, status="ok", nanoseconds=times, run_seconds=0.1)


def test_one_after_the_other_a_batch_is_finished_by_its_last_result(tmp_path: Path) -> None:
    run = Run(tmp_path, first=1)
    requests = run.start(4)
    assert {(request.at_once, request.alone) for request in requests} == {(1, False)}
    taken = run.take(requests, 1_000_000)
    assert taken.again == []
    assert taken.finished is not None
    assert len(taken.finished.records) == 4


def test_beside_each_other_a_batch_is_finished_by_its_check(tmp_path: Path) -> None:
    run = Run(tmp_path, first=2)
    requests = run.start(6)
    assert {request.at_once for request in requests} == {2}
    taken = run.take(requests, 1_100_000)
    assert taken.finished is None
    assert all(request.alone for request in taken.again)
    assert 0 in {request.candidate.number for request in taken.again}  # the fastest
    assert run.task.best_ms is None
    taken = run.take(taken.again, 1_000_000)
    assert taken.again == []
    assert taken.finished is not None
    assert len(taken.finished.records) == 6
    assert run.task.best_ms == 1.0
    assert run.parallelism.at_once(run.task.workload) == 1  # nine percent were too many


def test_what_wins_is_measured_alone(tmp_path: Path) -> None:
    run = Run(tmp_path, first=2)
    confirm = run.measuring.confirm(run.task, candidate(run.task, 1))
    assert confirm.alone
    assert confirm.repeats > run.start(1)[0].repeats


def test_every_task_has_one_measured_with_care_before_any_has_a_second(tmp_path: Path) -> None:
    run = Run(tmp_path, first=1)
    heavy, light = history(), history()
    chosen = [
        (heavy, [candidate(heavy, n) for n in (1, 2, 3)]),
        (light, [candidate(light, n) for n in (4, 5)]),
    ]
    confirm = run.measuring.confirm_in_turn(chosen)
    assert [request.candidate.number for request in confirm] == [1, 4, 2, 5, 3]
    assert all(request.repeats >= CONFIRMED_REPEATS for request in confirm)


def test_when_time_is_up_a_batch_counts_without_its_check(tmp_path: Path) -> None:
    run = Run(tmp_path, first=2)
    checks = run.take(run.start(3), 1_000_000).again
    finished = [run.measuring.give_up(request, 5) for request in checks]
    assert finished[-1] is not None
    assert len(finished[-1].records) == 3


def test_after_a_few_results_the_next_candidates_have_less_time_and_the_careful_ones_have_not(
    tmp_path: Path,
) -> None:
    run = Run(tmp_path, first=1)
    first = run.start(5)
    assert {request.patience_seconds for request in first} == {None}
    run.take(first, 1_000_000)
    default, later = run.start(2)
    assert default.patience_seconds is None
    assert later.patience_seconds == 5.0
    assert run.measuring.confirm(run.task, later.candidate).patience_seconds is None
