import os
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest

from tests.support.simulated.simulated_gpus import L4
from tests.support.worker_requests import make_candidate, measure_request
from tunegate.errors import EnvironmentUnfitError
from tunegate.runtimes.tvm.runtime import PROGRAMS
from tunegate.system.machine.cores import physical_cores
from tunegate.system.machine.device_lock import Claim, held_device
from tunegate.system.nvidia.gpus import MeasuredGpu
from tunegate.system.processes.child import Child
from tunegate.system.processes.memory_limit import MemoryLimit
from tunegate.tune.device_slots import in_slot, on_cpu, on_gpus, on_held_gpus
from tunegate.tune.protocol import Measure, Measured, Placement, Slot
from tunegate.tune.tuning_run import BrokenMachineWatch
from tunegate.tune.workers import WORKERS_LOG, Begin, LostWorkerError, WorkerPool, spawn_pool

PLENTY = MemoryLimit(8 * 2**30)


def odd_worker(directory: Path, memory: MemoryLimit = PLENTY) -> Begin:
    return lambda _: Child(
        "tests.support.simulated.odd_worker",
        Measured,
        variables={},
        memory=memory,
        log=directory / "log",
    )


@pytest.fixture
def pool(tmp_path: Path) -> Iterator[WorkerPool]:
    made = WorkerPool(on_cpu(2, tmp_path, 3.0), odd_worker(tmp_path))
    yield made
    made.close()


def request(number: int, behaviour: str) -> Measure:
    return measure_request(make_candidate(number, module=behaviour))


def pids_of(pool: WorkerPool) -> list[int]:
    return [child.pid for child in pool.children if isinstance(child, Child)]


def finish(pool: WorkerPool) -> dict[int, Measured]:
    results = {}
    deadline = time.monotonic() + 120
    while pool.pending and time.monotonic() < deadline:
        pool.dispatch()
        time.sleep(0.02)
        results.update({m.candidate.number: measured for m, measured in pool.collect()})
    return results


def test_a_crash_and_a_hang_cost_one_candidate_each_and_no_other(pool: WorkerPool) -> None:
    pool.add([request(1, "crash"), request(2, "hang"), *(request(n, "") for n in range(3, 9))])
    results = finish(pool)
    assert results[1].status == "runtime"
    assert "SIGABRT" in results[1].detail
    assert [results[n].has_killed_worker for n in (1, 2, 3)] == [True, False, False]
    assert not results[1].from_outside
    assert results[2].status == "timeout"
    assert [results[n].status for n in range(3, 9)] == ["ok"] * 6


def test_a_worker_that_exits_says_its_code(pool: WorkerPool) -> None:
    pool.add([request(1, "exit")])
    measured = finish(pool)[1]
    assert "exited with 1" in measured.detail
    assert measured.has_killed_worker


def test_a_worker_that_ended_itself_for_lack_of_patience_was_too_late(pool: WorkerPool) -> None:
    pool.add([msgspec.structs.replace(request(1, "exit"), patience_seconds=0.0)])
    measured = finish(pool)[1]
    assert (measured.status, measured.detail) == ("timeout", "no result in 0 s")


def test_a_worker_that_somebody_killed_says_nothing_of_its_candidate(pool: WorkerPool) -> None:
    """The kernel kills so where the machine has no memory left."""
    pool.add([request(1, "killed")])
    measured = finish(pool)[1]
    assert (measured.status, measured.from_outside) == ("runtime", True)


def test_closing_frees_the_machine_while_work_is_in_flight(pool: WorkerPool) -> None:
    pool.add([request(1, "hang"), request(2, "hang")])
    pool.dispatch()
    pids = pids_of(pool)
    pool.close()
    assert all(not Path(f"/proc/{pid}").exists() for pid in pids)


def test_a_candidate_that_asks_for_too_much_memory_costs_itself(tmp_path: Path) -> None:
    pool = WorkerPool(on_cpu(1, tmp_path, 10.0), odd_worker(tmp_path, MemoryLimit(2**31)))
    try:
        pool.add([request(1, "hoard"), request(2, "")])
        results = finish(pool)
    finally:
        pool.close()
    assert (results[1].status, results[2].status) == ("runtime", "ok")
    assert "MemoryError" in (tmp_path / "log").read_text()


def test_a_pool_of_one_each_keeps_the_idle_worker_of_a_device(pool: WorkerPool) -> None:
    pool.add([request(1, "hang"), request(2, "")])
    deadline = time.monotonic() + 120
    while not pool.collect() and time.monotonic() < deadline:
        pool.dispatch()
        time.sleep(0.02)
    idle = next(child for child in pool.children if child.busy_since is None)
    pool.keep_one_each()
    assert pool.children == (idle,)
    assert pool.pending == 0
    pool.add([request(3, "")])
    assert finish(pool)[3].status == "ok"


def test_a_grown_worker_is_replaced(pool: WorkerPool, monkeypatch: pytest.MonkeyPatch) -> None:
    before = set(pids_of(pool))
    pool.add([request(n, "") for n in range(16)])
    finish(pool)
    assert set(pids_of(pool)) == before
    monkeypatch.setattr("tunegate.tune.workers._MAX_BYTES", 1)
    pool.add([request(n, "") for n in range(16, 48)])
    finish(pool)
    assert before - set(pids_of(pool))


class OnLostMachine:
    """The first `losses` workers are on machines that vanish with what they had to do."""

    losses = 0
    busy_since: float | None = None
    is_ready = True

    def __init__(self) -> None:
        self._request: Measure | None = None

    def fileno(self) -> int:
        raise NotImplementedError

    def send(self, request: Measure) -> None:
        self._request = request

    def receive(self) -> Measured | None:
        if OnLostMachine.losses > 0:
            OnLostMachine.losses -= 1
            raise LostWorkerError("node 7 is gone")
        assert self._request is not None
        return Measured(number=self._request.candidate.number, status="ok", nanoseconds=(5,))

    def resident_bytes(self) -> int:
        return 0

    def kill(self) -> None:
        pass


@pytest.mark.parametrize(("losses", "status"), [(2, "ok"), (3, "runtime")])
def test_a_lost_machines_work_is_tried_elsewhere(tmp_path: Path, losses: int, status: str) -> None:
    OnLostMachine.losses = losses
    pool = WorkerPool(on_cpu(1, tmp_path, 3.0), lambda _: OnLostMachine())
    pool.add([request(1, "")])
    assert finish(pool)[1].status == status


def variables_of(pid: int) -> list[str]:
    """The kernel shows none until it has put the new program in place."""
    shown = Path(f"/proc/{pid}/environ")
    deadline = time.monotonic() + 60
    while not shown.read_text() and time.monotonic() < deadline:
        time.sleep(0.01)
    return shown.read_text().split("\0")


def test_a_pool_for_a_cpu_has_as_many_workers_as_asked_for(tmp_path: Path) -> None:
    pool = spawn_pool(2, PROGRAMS.worker, threads=1, kind="llvm", gpus=(), directory=tmp_path)
    try:
        variables = [variables_of(pid) for pid in pids_of(pool)]
        pool.keep_one_each()
        assert len(pool.children) == 1
    finally:
        pool.close()
    assert len(variables) == 2
    assert all("TVM_NUM_THREADS=1" in each for each in variables)
    assert (tmp_path / WORKERS_LOG).exists()


DIED = Measured(number=1, status="compile", has_killed_worker=True)
ILLEGAL = "the worker ended (failed (CUDA: cudaErrorIllegalAddress (700)))"


@pytest.mark.parametrize(
    ("detail", "told"),
    [("", "libfoo is missing"), (ILLEGAL, r"^the device ends each .*Address \(700\)")],
)
def test_four_workers_that_die_before_anything_ran_end_the_run(
    tmp_path: Path, detail: str, told: str
) -> None:
    """The last line of their log tells why, unless their device does."""
    log = tmp_path / "workers.log"
    log.write_text("one\nlibfoo is missing\n")
    watch = BrokenMachineWatch(log)
    died = msgspec.structs.replace(DIED, detail=detail)
    for _ in range(3):
        watch.see(died)
    with pytest.raises(EnvironmentUnfitError, match=told):
        watch.see(died)


def test_once_something_ran_the_candidates_are_at_fault(tmp_path: Path) -> None:
    watch = BrokenMachineWatch(tmp_path / "workers.log")
    watch.see(Measured(number=1, status="ok", nanoseconds=(1,)))
    for _ in range(9):
        watch.see(DIED)


def measured(uuid: str) -> MeasuredGpu:
    gpu = msgspec.structs.replace(L4, uuid=uuid)
    return MeasuredGpu(gpu, Claim(uuid=uuid, directory="/run/lock", wait_seconds=300))


def test_workers_on_a_cpu_share_a_slot_for_each_core(tmp_path: Path) -> None:
    places = on_cpu(3, tmp_path, 20)
    cores = physical_cores()[:3]
    assert len(places) == 3
    assert {place.slots for place in places} == {places[0].slots}
    assert [slot.cores for slot in places[0].slots] == list(cores)
    assert len({slot.claim.path for slot in places[0].slots}) == len(cores)
    assert {place.limit_seconds for place in places} == {20}


def test_every_device_of_the_machine_is_used() -> None:
    places = on_gpus(2, [measured("GPU-a"), measured("GPU-b"), measured("GPU-c")], 20)
    assert [p.variables["CUDA_VISIBLE_DEVICES"] for p in places] == ["GPU-a", "GPU-b", "GPU-c"]


def test_more_workers_than_devices_build_while_one_of_each_measures() -> None:
    places = on_gpus(5, [measured("GPU-a"), measured("GPU-b")], 20)
    assert [place.device.uuid for place in places] == ["GPU-a", "GPU-b", "GPU-a", "GPU-b", "GPU-a"]
    assert {len(place.slots) for place in places} == {1}


def test_waiting_for_a_device_is_not_taken_for_hanging() -> None:
    (place,) = on_gpus(1, [measured("GPU-a")], 20)
    assert (place.measuring_seconds, place.limit_seconds) == (20, 340)


def test_on_devices_that_a_run_holds_each_worker_has_a_slot(tmp_path: Path) -> None:
    places = on_held_gpus(5, [measured("GPU-a"), measured("GPU-b")], tmp_path, 20)
    expected = [*("GPU-a", "GPU-b"), *("GPU-a", "GPU-b"), "GPU-a"]
    assert [place.variables["CUDA_VISIBLE_DEVICES"] for place in places] == expected
    assert [len(place.slots) for place in places] == [3, 2, 3, 2, 3]
    assert places[0].slots == places[2].slots
    assert not {s.claim.path for s in places[0].slots} & {s.claim.path for s in places[1].slots}
    assert {slot.claim.path.parent for slot in places[0].slots} == {tmp_path}
    assert all(place.has_kernel_clock for place in places)


# The two kinds of turns: beside others, each on a core of its own, or alone, with nobody in any
# slot.

ALONE = """
import sys
import msgspec
from tunegate.tune.protocol import Measure
from tunegate.tune.device_slots import in_slot
with in_slot(msgspec.msgpack.decode(sys.stdin.buffer.read(), type=Measure)):
    print("alone", flush=True)
"""


def place(directory: Path, slots: int = 2) -> Placement:
    core = min(os.sched_getaffinity(0))
    return Placement(
        slots=tuple(
            Slot(
                claim=Claim(uuid=f"s{n}", directory=str(directory), wait_seconds=30), cores=(core,)
            )
            for n in range(slots)
        ),
        limit_seconds=60,
    )


def asked(directory: Path, *, at_once: int = 2, alone: bool = False, slots: int = 2) -> Measure:
    where = place(directory, slots)
    return measure_request(make_candidate(), at_once=at_once, alone=alone, place=where)


def test_two_may_time_at_once_each_on_its_core(tmp_path: Path) -> None:
    before = os.sched_getaffinity(0)
    with in_slot(asked(tmp_path, at_once=2)):
        assert os.sched_getaffinity(0) == {min(before)}
        second = place(tmp_path).slots[1]
        with held_device(second.claim):
            pass  # it is free
    assert os.sched_getaffinity(0) == before


@pytest.mark.parametrize(("at_once", "alone"), [(2, True), (1, False)])
def test_who_is_alone_waits_until_all_are_gone(tmp_path: Path, at_once: int, alone: bool) -> None:
    with in_slot(asked(tmp_path, at_once=2)):
        other = subprocess.Popen(
            [sys.executable, "-c", ALONE], stdin=subprocess.PIPE, stdout=subprocess.PIPE
        )
        assert other.stdin is not None
        other.stdin.write(msgspec.msgpack.encode(asked(tmp_path, at_once=at_once, alone=alone)))
        other.stdin.close()
        time.sleep(1.0)
        assert other.poll() is None
    assert other.wait(100) == 0
    assert other.stdout is not None
    assert other.stdout.read() == b"alone\n"
    other.stdout.close()


def test_who_wants_to_be_alone_is_not_passed_by_for_ever(tmp_path: Path) -> None:
    """Others come and go all the time; each would find a free slot."""
    is_over = threading.Event()

    def come_and_go() -> None:
        while not is_over.is_set():
            with in_slot(asked(tmp_path, at_once=2)):
                time.sleep(0.02)

    crowd = [threading.Thread(target=come_and_go) for _ in range(4)]
    for one in crowd:
        one.start()
    try:
        started = time.monotonic()
        for _ in range(3):
            with in_slot(asked(tmp_path, alone=True)):
                pass
        assert time.monotonic() - started < 100  # the others come and go until the test ends
    finally:
        is_over.set()
        for one in crowd:
            one.join()


def test_a_device_with_one_slot_is_for_one(tmp_path: Path) -> None:
    with in_slot(asked(tmp_path, slots=1)):
        assert place(tmp_path).slots[0].claim.path.exists()
