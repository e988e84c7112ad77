"""The search keeps up with the workers: as many children as both costs, measured, ask for."""

import random
from typing import NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from tests.support.tuning_tasks import exact, make_task, transfer
from tunegate.artifacts.tasks import ResolvedTask, TaskUse
from tunegate.tune import expected_time
from tunegate.tune.parallel_measurement import CheckedBatch, Parallelism, corrected_batch, to_check
from tunegate.tune.protocol import Measured
from tunegate.tune.searchers import searchers_for
from tunegate.tune.tuning_run import Throughput
from tunegate_cache.format.records import ExactHit, Lookup, Miss

CORES = WORKERS = 16
BATCH = 8
JOINING_SECONDS = 20.0
STEP_SECONDS = 0.01


class Cost(NamedTuple):
    """Seconds of one candidate: those of a core to find and to build it, those of the device."""

    find: float
    build: float
    run: float = 0.07


H200 = Cost(find=0.39, build=1.56)
"""As a machine with an H200 and 16 cores took, before texts were compiled without headers."""
SMALL, LARGE = Cost(find=0.07, build=0.87), Cost(find=0.20, build=1.61)
"""Seconds of CPU by `benchmarks.tuning.gpu_candidate_cost`: a transformer and squeezenet."""


def result(number: int = 1, build: float = H200.build, waited: float = 0.0) -> Measured:
    return Measured(
        number=number,
        status="ok",
        nanoseconds=(1000,),
        build_seconds=build,
        run_seconds=H200.run + waited,
        waited_seconds=waited,
    )


class Rate(NamedTuple):
    candidates_a_second: float
    gpu_is_busy: float
    """The share of the time in which any candidate is on the device."""


class Machine:
    """Virtual cores and a device, with the laws of a tuning run: search children find batches,
    workers build candidates and run them. All that compute share the cores fairly. A build takes
    half to one and a half times its mean."""

    def __init__(self, cost: Cost, searchers: int) -> None:
        self.cost = cost
        self.throughput = Throughput(WORKERS, CORES)
        self.finding: list[float | None] = [None] * searchers
        self.building: list[float | None] = [None] * WORKERS
        self.running: list[float | None] = [None] * WORKERS
        self.joining: list[float] = []
        self.queue = self.measured = 0
        self.now = self.busy_seconds = 0.0
        self.draw = random.Random(1)

    def run(self, seconds: float) -> Rate:
        measured, busy, until = self.measured, self.busy_seconds, self.now + seconds
        while self.now < until:
            self._step()
        return Rate((self.measured - measured) / seconds, (self.busy_seconds - busy) / seconds)

    def _step(self) -> None:
        self.now += STEP_SECONDS
        for n, left in enumerate(self.finding):
            if left is None and self.queue < self.throughput.look_ahead():
                self.finding[n] = self.cost.find * BATCH
        for n in range(WORKERS):
            if self.building[n] is None and self.running[n] is None and self.queue:
                self.queue -= 1
                self.building[n] = self.cost.build * self.draw.uniform(0.5, 1.5)
        self.busy_seconds += STEP_SECONDS * any(left is not None for left in self.running)
        computing = sum(left is not None for left in (*self.finding, *self.building))
        done = STEP_SECONDS * min(1.0, CORES / max(1, computing))
        measured = _work_on(self.running, STEP_SECONDS)
        found = _work_on(self.finding, done)
        for n in _work_on(self.building, done):
            self.running[n] = self.cost.run
        self.queue += BATCH * len(found)
        self.measured += len(measured)
        for _ in found:
            self.throughput.note_proposal(self.cost.find * BATCH, BATCH)
        for n in measured:
            self.throughput.note_result(result(n, build=self.cost.build))
        self._grow()

    def _grow(self) -> None:
        have = len(self.finding) + len(self.joining)
        wanted = self.throughput.searchers(have)
        self.joining += [self.now + JOINING_SECONDS] * (wanted - have)
        ready = [at for at in self.joining if at <= self.now]
        self.joining = [at for at in self.joining if at > self.now]
        self.finding += [None] * len(ready)


def _work_on(all_left: list[float | None], seconds: float) -> list[int]:
    """Works on each of these. Returns the places of those that are done."""
    done = []
    for n, left in enumerate(all_left):
        if left is not None:
            all_left[n] = left - seconds if left > seconds else None
            if left <= seconds:
                done.append(n)
    return done


def most(cost: Cost) -> float:
    """Returns the candidates a second that the cores have time for."""
    return CORES / (cost.find + cost.build)


FOR_A_GPU = searchers_for(WORKERS, CORES, "cuda", 30)


def test_children_that_join_by_measurement_take_all_that_the_cores_give() -> None:
    machine = Machine(H200, 1)
    machine.run(60.0)
    assert machine.run(60.0).candidates_a_second > 0.95 * most(H200)
    assert len(machine.finding) == 4


@pytest.mark.parametrize("cost", [SMALL, LARGE], ids=["small kernels", "large kernels"])
def test_sixteen_cores_tune_eight_candidates_a_second_and_keep_a_gpu_busy(cost: Cost) -> None:
    rate = Machine(cost, FOR_A_GPU).run(120.0)
    assert rate.candidates_a_second > max(8.0, 0.9 * most(cost))
    assert rate.gpu_is_busy > 0.4


def test_the_search_looks_ahead_for_what_workers_take_while_a_batch_is_found() -> None:
    throughput = Throughput(WORKERS, CORES)
    assert throughput.look_ahead() == 4
    throughput.note_proposal(BATCH * 0.09, BATCH)
    for number in range(8):
        throughput.note_result(result(number, build=2.0))
    assert throughput.look_ahead() == 6  # what sixteen workers take in 0.72 s
    throughput.note_proposal(BATCH * 0.69, BATCH)  # 3.12 s for a batch, in the mean
    assert throughput.look_ahead() == 25


def test_the_report_says_how_fast_it_went_and_whom_it_waited_for() -> None:
    throughput = Throughput(WORKERS, CORES)
    assert throughput.notes() == ()
    throughput.note_proposal(20.0, 40)
    for number in range(40):
        throughput.note_result(result(number, build=1.0, waited=0.5))
    throughput.note_wait(6.0, has_idle_worker=True)
    throughput.note_wait(4.0, has_idle_worker=False)
    for percent in (None, 40.0, None, 20.0):
        throughput.note_busy(percent)
    (note,) = throughput.notes()
    assert note.split("; ") == [
        "4.0 candidates a second in 10 s of tuning",
        (
            "6.0 of 16 cores and 30% of the GPU's time were busy (a candidate took 0.50 s to find "
            "and 1.00 s to build), and candidates ran for 3 s"
        ),
        "waited for: the search 60%, builds 40% of the time",
        "workers 20 s for the device",
    ]


# A batch that was timed beside others: what is asked again, and what is believed.


def timed(number: int, nanoseconds: int, run_seconds: float = 0.1) -> Measured:
    return Measured(
        number=number, status="ok", nanoseconds=(nanoseconds,) * 3, run_seconds=run_seconds
    )


def failed(number: int, status: str = "runtime") -> Measured:
    return Measured(number=number, status="compile" if status == "compile" else "runtime")


def checked(*results: Measured) -> set[int]:
    return set(to_check(results, random.Random(1)))


def test_failures_that_others_may_have_caused_are_asked_again() -> None:
    assert checked(failed(1), failed(2, "compile"), timed(3, 1000)) == {1, 3}


def test_an_outlier_is_asked_again() -> None:
    odd = timed(7, 10_000_000, run_seconds=0.02)
    assert 7 in checked(*(timed(n, 1_000_000 + 1000 * n) for n in range(6)), odd)


def test_what_was_measured_alone_counts_and_the_others_are_corrected() -> None:
    batch = [timed(n, 1_000_000) for n in range(4)]
    found = corrected_batch(batch, {0: timed(0, 900_000), 1: timed(1, 900_000)})
    assert found.error == pytest.approx(0.1)
    assert [r.nanoseconds[0] for r in found.results] == [900_000, 900_000, 900_000, 900_000]
    assert found.failures == 0


def test_an_error_that_is_too_large_corrects_nobody() -> None:
    batch = [timed(n, 1_000_000) for n in range(4)]
    found = corrected_batch(batch, {0: timed(0, 500_000), 1: timed(1, 500_000)})
    assert [r.nanoseconds[0] for r in found.results] == [500_000, 500_000, 1_000_000, 1_000_000]


def test_a_failure_that_does_not_happen_alone_was_the_others_fault() -> None:
    found = corrected_batch([failed(1), failed(2)], {1: timed(1, 1000), 2: failed(2)})
    assert found.failures == 1
    assert [r.status for r in found.results] == ["ok", "runtime"]


TASK, OTHER = "a", "b"


def batch(waited_seconds: float) -> list[Measured]:
    return [
        Measured(
            number=n,
            status="ok",
            nanoseconds=(1,),
            build_seconds=0.4,
            run_seconds=0.1 + waited_seconds,
            waited_seconds=waited_seconds,
        )
        for n in range(8)
    ]


def test_where_nobody_waits_for_the_device_each_has_it_alone() -> None:
    mine = Parallelism(slots=16)
    mine.note_alone(TASK, batch(0.01))
    assert mine.at_once(TASK) == 1
    assert mine.notes() == ()


def test_where_many_wait_more_are_let_in() -> None:
    mine = Parallelism(slots=16)
    mine.note_alone(TASK, batch(0.3))
    assert mine.at_once(TASK) == 9


def test_times_that_are_off_bring_it_down_again_and_the_report_says_so() -> None:
    mine = Parallelism(slots=16, first=8)
    mine.note_beside(TASK, CheckedBatch((), error=0.12, failures=0))
    assert mine.at_once(TASK) == 7
    (note,) = mine.notes()
    assert note.startswith("up to 8 candidates were timed at once")
    assert "off by 12.0% on average" in note


def test_each_task_has_its_own_and_begins_where_the_last_one_stands() -> None:
    mine = Parallelism(slots=16, first=4)
    mine.note_beside(TASK, CheckedBatch((), error=0.01, failures=0))
    grown = mine.at_once(TASK)
    assert mine.at_once(OTHER) == grown > 4
    mine.note_beside(OTHER, CheckedBatch((), error=0.2, failures=0))
    assert mine.at_once(OTHER) < grown
    assert mine.at_once(TASK) == grown


# What is expected of a task before it is measured.

KINDS = st.sampled_from(["llvm", "cuda"])
MISS = Miss("absent")


def room_of(operator: str, lookup: Lookup = MISS, flops: float = 1e9) -> float:
    return expected_time.assumed_headroom(
        ResolvedTask(make_task(operator=operator, flops=flops), lookup), "llvm"
    )


def test_a_neighbours_schedule_leaves_some_room_and_an_exact_one_none() -> None:
    assert room_of("conv2d", exact()) == 0
    assert 0 < room_of("conv2d", transfer()) < room_of("conv2d")
    assert room_of("conv2d", transfer(0.5)) < room_of("conv2d", transfer(6.0))


def test_traffic_bounds_what_tuning_can_save() -> None:
    copied = make_task(operator="transpose", flops=0, bytes_moved=4e9)
    assert expected_time.prior_ms(copied) == pytest.approx(1000, rel=0.01)
    assert expected_time.assumed_headroom(ResolvedTask(copied, MISS), "llvm") == pytest.approx(0.05)


@given(st.floats(0, 1e13), st.floats(0, 1e11), KINDS)
def test_more_work_never_takes_less_time(
    flops: float, bytes_moved: float, kind: expected_time.TargetKind
) -> None:
    less = make_task(flops=flops, bytes_moved=bytes_moved)
    more = make_task(flops=flops * 2, bytes_moved=bytes_moved * 2)
    assert 0 < expected_time.prior_ms(less, kind) <= expected_time.prior_ms(more, kind)
    assert (
        0
        < expected_time.seconds_per_trial(less, kind)
        <= expected_time.seconds_per_trial(more, kind)
        <= 2
    )


def test_a_measured_time_is_believed_over_a_guess() -> None:
    task = make_task()
    assert expected_time.known_ms(ResolvedTask(task, exact(milliseconds=3.5)), "llvm") == 3.5
    assert expected_time.known_ms(
        ResolvedTask(task, ExactHit(())), "llvm"
    ) == expected_time.prior_ms(task)


def test_a_task_counts_once_for_base_and_head_and_again_for_each_model() -> None:
    uses = [("a", "base", 3), ("a", "head", 2), ("b", "head", 1), ("b", "head", 1)]
    made = (
        TaskUse(model=model, side=side, weight=weight, name="n")  # type: ignore[arg-type]  # rows
        for model, side, weight in uses
    )
    shared = replace(make_task(), uses=tuple(made))
    assert expected_time.weight_of(shared) == 5
