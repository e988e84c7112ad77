import random
from pathlib import Path

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.worker_requests import build_request, make_candidate, measure_request
from tests.tune.test_batches import candidate, history
from tests.tune.test_prior import SKETCH
from tunegate.artifacts.candidates import FLOAT32
from tunegate.system.machine.device_lock import Claim
from tunegate.tune import compiler_protocol, parallel_measurement, protocol
from tunegate.tune.batches import OpenBatches
from tunegate.tune.candidate_requests import CandidateMeasurements, ResultEffect
from tunegate.tune.task_history import TaskHistory
from tunegate_cache.format.records import CONFIRMED_REPEATS

CANDIDATE = make_candidate()
SLOT = protocol.Slot(claim=Claim(uuid="cpu", directory="/d", wait_seconds=1.0))


@pytest.mark.parametrize(
    ("patience", "place", "watched"),
    [(None, None, None), (3.0, None, 3.0), (None, 5.0, 5.0), (3.0, 5.0, 3.0), (7.0, 5.0, 5.0)],
)
def test_a_worker_ends_itself_after_the_shorter_patience(
    request_of: protocol.Measure, patience: float | None, place: float | None, watched: float | None
) -> None:
    placement = protocol.Placement(slots=(SLOT,), limit_seconds=99.0, measuring_seconds=place)
    request = msgspec.structs.replace(request_of, patience_seconds=patience, place=placement)
    assert request.watched_seconds == watched


def test_a_request_survives_the_pipe(request_of: protocol.Measure) -> None:
    sent = msgspec.msgpack.encode(request_of)
    assert msgspec.msgpack.decode(sent, type=protocol.Measure) == request_of


@pytest.fixture
def request_of() -> protocol.Measure:
    return measure_request(CANDIDATE, reference="/r", loser_ms=10.0, repeats=3)


def test_the_sketches_of_a_proposal_cross_to_another_process() -> None:
    proposed = protocol.Proposed("w", (CANDIDATE,), exhausted=False, sketches={"template": SKETCH})
    assert (
        msgspec.msgpack.decode(msgspec.msgpack.encode(proposed), type=protocol.Proposed) == proposed
    )


@pytest.mark.parametrize(
    ("precision", "launch", "settings"),
    [
        (FLOAT32, "", {}),
        ("bfloat16", "", {"precision": "bfloat16"}),
        (FLOAT32, "whole", {"launch": "whole"}),
        ("bfloat16", "whole", {"precision": "bfloat16", "launch": "whole"}),
    ],
)
def test_settings_are_what_differs_from_the_usual_build(
    tmp_path: Path, precision: str, launch: str, settings: dict[str, str]
) -> None:
    request = build_request(Path("m.onnx"), tmp_path, precision=precision, launch=launch)
    assert request.settings == settings


# What is measured again alone, and what that says of the others.

shares = st.lists(st.floats(0.001, 1), max_size=64)


def test_a_value_far_from_the_others_is_an_outlier() -> None:
    assert parallel_measurement.outliers([1.0, 1.1, 0.9, 1.05, 0.95, 9.0]) == (5,)


def test_each_side_of_the_median_has_its_own_spread() -> None:
    """Far above is usual here, and the same distance below is not."""
    assert parallel_measurement.outliers(
        [10.0, 10.1, 9.9, 10.0, 14.0, 13.0, 15.0, 12.0, 9.8, 5.0]
    ) == (9,)


def test_a_fifth_is_checked_rounded_up() -> None:
    assert len(parallel_measurement.pick_results_to_check([1.0] * 16, random.Random(1))) == 4


def test_outliers_are_checked_even_where_they_are_more_than_a_fifth() -> None:
    odd = [1.0, 1.01, 0.99, 1.0, 1.01, 0.99, 1.0, 1.02, 0.98, 1.0, 9.0, 9.5, 8.0]
    assert set(parallel_measurement.outliers(odd)) <= set(
        parallel_measurement.pick_results_to_check(odd, random.Random(1))
    )


@given(shares, st.integers())
def test_what_is_checked_is_a_part_of_the_batch(values: list[float], seed: int) -> None:
    found = parallel_measurement.pick_results_to_check(values, random.Random(seed))
    assert len(set(found)) == len(found)
    assert all(0 <= place < len(values) for place in found)
    assert len(found) >= len(values) / 5 or len(values) < 3


def test_the_error_is_the_mean_of_the_relative_differences() -> None:
    assert parallel_measurement.error({0: 10.0, 3: 20.0}, {0: 9.0, 3: 22.0}) == pytest.approx(0.1)


def test_the_kernel_that_a_child_died_of_is_found_in_its_directory(tmp_path: Path) -> None:
    assert compiler_protocol.running_kernel(tmp_path) == ""
    running = compiler_protocol.RunningKernel(tmp_path)
    assert compiler_protocol.running_kernel(tmp_path) == ""
    running.note("a" * 64)
    assert compiler_protocol.running_kernel(tmp_path) == "a" * 64
    running.note("")
    assert compiler_protocol.running_kernel(tmp_path) == ""
    running.close()


# The way from candidates to finished batches, with results that are given here.


class Run:
    """A run of one task; `first` is how many are timed at once from the beginning."""

    def __init__(self, directory: Path, first: int) -> None:
        self.task: TaskHistory = history()
        self.parallelism = parallel_measurement.Parallelism(4, first)
        self.batches = OpenBatches([self.task.workload])
        self.measuring = CandidateMeasurements(self.batches, directory, self.parallelism, 1)

    def start(self, count: int) -> list[protocol.Measure]:
        return self.measuring.start(self.task, [candidate(self.task, n) for n in range(count)])

    def take(self, requests: list[protocol.Measure], nanoseconds: int) -> ResultEffect:
        taken = ResultEffect([], None)
        for request in requests:
            taken = self.measuring.take(request, result(request, nanoseconds), 5)
        return taken


def result(request: protocol.Measure, nanoseconds: int) -> protocol.Measured:
    number = request.candidate.number
    times = (nanoseconds + 1000 * number,)
    return protocol.Measured(number=number, status="ok", nanoseconds=times, run_seconds=0.1)


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
