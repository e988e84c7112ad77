"""The search keeps up with the workers: as many children as both costs, measured, ask for."""

from __future__ import annotations

import pytest

from tunegate.tune.protocol import Measured
from tunegate.tune.searchers import searchers_for
from tunegate.tune.tuning_run import Throughput

CORES = WORKERS = 16
FIND_SECONDS, BUILD_SECONDS, RUN_SECONDS = 0.39, 1.56, 0.07
"""Of one candidate, as a machine with an H200 and 16 cores took."""
LOOK_AHEAD = 4
JOINING_SECONDS = 20.0
STEP_SECONDS = 0.01


def result(number: int = 1, build: float = BUILD_SECONDS, waited: float = 0.0) -> Measured:
    return Measured(
        number=number,
        status="ok",
        nanoseconds=(1000,),
        build_seconds=build,
        run_seconds=RUN_SECONDS + waited,
        waited_seconds=waited,
    )


class Machine:
    """Search children and workers on the same cores, which they share fairly. Each is the seconds
    of work that are left of its candidate, or None where it has none."""

    def __init__(self, searchers: int, *, grows: bool) -> None:
        self.throughput = Throughput(WORKERS, CORES)
        self.searchers: list[float | None] = [None] * searchers
        self.workers: list[float | None] = [None] * WORKERS
        self.joining: list[float] = []
        self.grows, self.queue, self.measured, self.now = grows, 0, 0, 0.0

    def run(self, seconds: float) -> float:
        """Returns the candidates a second."""
        before, until = self.measured, self.now + seconds
        while self.now < until:
            self._step()
        return (self.measured - before) / seconds

    def _step(self) -> None:
        self.now += STEP_SECONDS
        for n, left in enumerate(self.searchers):
            if left is None and self.queue < LOOK_AHEAD:
                self.searchers[n] = FIND_SECONDS
        for n, left in enumerate(self.workers):
            if left is None and self.queue:
                self.queue -= 1
                self.workers[n] = BUILD_SECONDS + RUN_SECONDS
        at_work = sum(left is not None for left in (*self.searchers, *self.workers))
        done = STEP_SECONDS * min(1.0, CORES / max(1, at_work))
        found, built = (_worked(each, done) for each in (self.searchers, self.workers))
        self.queue += found
        self.measured += built
        for _ in range(found):
            self.throughput.note_proposal(FIND_SECONDS, 1)
        for _ in range(built):
            self.throughput.note_result(result())
        self._grow()

    def _grow(self) -> None:
        if self.grows:
            have = len(self.searchers) + len(self.joining)
            wanted = self.throughput.searchers(have)
            self.joining += [self.now + JOINING_SECONDS] * (wanted - have)
        ready = [at for at in self.joining if at <= self.now]
        self.joining = [at for at in self.joining if at > self.now]
        self.searchers += [None] * len(ready)


def _worked(all_left: list[float | None], done: float) -> int:
    """Works on each candidate, and returns how many are ready."""
    ready = 0
    for n, left in enumerate(all_left):
        if left is not None:
            all_left[n] = left - done if left > done else None
            ready += left <= done
    return ready


def test_one_search_child_starves_sixteen_workers() -> None:
    assert Machine(1, grows=False).run(60.0) < 2.7


def test_children_that_join_by_measurement_take_all_that_the_cores_give() -> None:
    machine = Machine(1, grows=True)
    machine.run(60.0)
    most = CORES / (FIND_SECONDS + BUILD_SECONDS + RUN_SECONDS)
    assert most == pytest.approx(7.9, abs=0.05)
    assert machine.run(60.0) > 0.95 * most
    assert len(machine.searchers) == 4


def test_a_gpu_begins_with_enough_children_and_needs_no_others() -> None:
    machine = Machine(searchers_for(WORKERS, CORES, "cuda", 30), grows=True)
    assert machine.run(120.0) > 0.93 * CORES / (FIND_SECONDS + BUILD_SECONDS + RUN_SECONDS)
    assert len(machine.searchers) == 4


def test_nobody_joins_before_costs_are_known_nor_where_the_search_is_fast() -> None:
    throughput = Throughput(WORKERS, CORES)
    throughput.note_proposal(10.0, 7)
    for number in range(7):
        throughput.note_result(result(number))
    assert throughput.searchers(1) == 1
    for number in range(100):
        throughput.note_proposal(0.03, 1)
        throughput.note_result(result(number))
    assert throughput.searchers(1) == 2  # sixteen workers take 9.8 a second: 0.13 s to find each
    assert Throughput(WORKERS, CORES).searchers(3) == 3


def test_half_of_the_cores_build() -> None:
    throughput = Throughput(WORKERS, CORES)
    throughput.note_proposal(1000.0, 10)
    for number in range(10):
        throughput.note_result(result(number))
    assert throughput.searchers(1) == CORES // 2


def test_the_report_says_how_fast_it_went_and_whom_it_waited_for() -> None:
    throughput = Throughput(WORKERS, CORES)
    assert throughput.notes() == ()
    throughput.note_proposal(20.0, 40)
    for number in range(40):
        throughput.note_result(result(number, build=1.0, waited=0.5))
    throughput.note_wait(6.0, has_idle_worker=True)
    throughput.note_wait(4.0, has_idle_worker=False)
    (note,) = throughput.notes()
    assert note.split("; ") == [
        "4.0 candidates a second in 10 s of tuning",
        (
            "6.0 of 16 cores were busy (a candidate took 0.50 s to find and 1.00 s to build), and "
            "candidates ran for 3 s"
        ),
        "waited for: the search 60%, builds 40% of the time",
        "workers 20 s for the device",
    ]
