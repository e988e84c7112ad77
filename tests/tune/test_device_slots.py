from __future__ import annotations

import os
import subprocess
import sys
import threading
import time
from pathlib import Path

import msgspec
import pytest

from tests.tune.test_workers import request
from tunegate.artifacts.measurements import Gpu
from tunegate.system.machine.cores import physical_cores
from tunegate.system.machine.device_lock import Claim, held_device
from tunegate.system.nvidia.gpus import MeasuredGpu
from tunegate.tune.device_slots import in_slot, on_cpu, on_gpus, on_held_gpus
from tunegate.tune.protocol import Measure, Placement, Slot


def measured(uuid: str) -> MeasuredGpu:
    gpu = Gpu(
        index=0,
        uuid=uuid,
        name="NVIDIA L4",
        compute_capability="8.9",
        cores=1,
        memory_bytes=1,
        driver="1",
    )
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
    assert [place.variables["CUDA_VISIBLE_DEVICES"] for place in places] == [
        *("GPU-a", "GPU-b"),
        *("GPU-a", "GPU-b"),
        "GPU-a",
    ]
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
    plain = request(1, "")
    return Measure(
        candidate=plain.candidate,
        target_json="",
        reference="",
        writes_reference=False,
        loser_ms=1.0,
        seed=1,
        repeats=1,
        at_once=at_once,
        alone=alone,
        place=place(directory, slots),
    )


def test_two_may_time_at_once_each_on_its_core(tmp_path: Path) -> None:
    before = os.sched_getaffinity(0)
    with in_slot(asked(tmp_path, at_once=2)):
        assert os.sched_getaffinity(0) == {min(before)}
        second = place(tmp_path).slots[1]
        with held_device(second.claim):
            pass  # it is free
    assert os.sched_getaffinity(0) == before


@pytest.mark.parametrize(("at_once", "alone"), [(2, True), (1, False)])
def test_who_is_alone_waits_until_everybody_is_gone(
    tmp_path: Path, at_once: int, alone: bool
) -> None:
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


def test_without_a_place_there_is_nothing_to_wait_for() -> None:
    with in_slot(request(1, "")):
        pass
