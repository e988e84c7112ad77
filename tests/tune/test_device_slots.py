from __future__ import annotations

from pathlib import Path

from tunegate.artifacts.measurements import Gpu
from tunegate.system.machine.cores import physical_cores
from tunegate.system.machine.device_lock import Claim
from tunegate.system.nvidia.gpus import MeasuredGpu
from tunegate.tune.device_slots import on_cpu, on_gpus, on_held_gpus


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
