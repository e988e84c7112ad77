from __future__ import annotations

from pathlib import Path

from tunegate.artifacts.gpus import Gpu
from tunegate.edges.device_lock import Claim
from tunegate.edges.metaschedule.places import on_cpu, on_gpus
from tunegate.edges.nvidia.session import MeasuredGpu


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


def test_workers_on_a_cpu_take_turns_in_timing(tmp_path: Path) -> None:
    places = on_cpu(3, tmp_path, 20)
    assert len(places) == 3
    assert {place.claim.path for place in places} == {tmp_path / "tunegate-timing.lock"}
    assert {place.limit_seconds for place in places} == {20}


def test_every_device_of_the_machine_is_used() -> None:
    places = on_gpus(2, [measured("GPU-a"), measured("GPU-b"), measured("GPU-c")], 20)
    assert [p.variables["CUDA_VISIBLE_DEVICES"] for p in places] == ["GPU-a", "GPU-b", "GPU-c"]


def test_more_workers_than_devices_build_while_one_of_each_measures() -> None:
    places = on_gpus(5, [measured("GPU-a"), measured("GPU-b")], 20)
    assert [place.claim.uuid for place in places] == ["GPU-a", "GPU-b", "GPU-a", "GPU-b", "GPU-a"]


def test_waiting_for_a_device_is_not_taken_for_hanging() -> None:
    (place,) = on_gpus(1, [measured("GPU-a")], 20)
    assert (place.measuring_seconds, place.limit_seconds) == (20, 340)
