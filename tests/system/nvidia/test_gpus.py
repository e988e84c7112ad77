"""Which devices a CUDA program started here would see."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.simulated.simulated_gpus import gpu, simulated
from tunegate.artifacts.measurements import Gpu
from tunegate.system.machine.device_lock import Claim
from tunegate.system.nvidia.device_errors import raise_lost_device
from tunegate.system.nvidia.gpus import MeasuredGpu, fingerprint_of, visible_gpus

THREE = (gpu("GPU-aa1"), gpu("GPU-ab2", name="NVIDIA H100", capability=[9, 0]), gpu("GPU-c3"))


def uuids(visible: str | None) -> list[str]:
    variables = {} if visible is None else {"CUDA_VISIBLE_DEVICES": visible}
    return [found.uuid for found in visible_gpus(variables)]


def test_a_machine_without_a_driver_has_none() -> None:
    assert visible_gpus({}) == ()


def test_a_device_is_known_by_what_decides_its_speed(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    simulated(monkeypatch, tmp_path, *THREE)
    found = visible_gpus({})[1]
    assert (found.name, found.uuid, found.compute_capability) == ("NVIDIA H100", "GPU-ab2", "9.0")
    assert (found.power_cap_watts, found.max_sm_mhz, found.driver) == (72.0, 2040, "570.1")
    assert (found.is_part, found.ecc) == (False, None)
    assert fingerprint_of(found).units == 7424


@pytest.mark.parametrize(
    ("visible", "expected"),
    [
        (None, ["GPU-aa1", "GPU-ab2", "GPU-c3"]),
        ("2,0", ["GPU-c3", "GPU-aa1"]),
        ("GPU-ab2", ["GPU-ab2"]),
        ("GPU-ab", ["GPU-ab2"]),
        ("GPU-a", []),  # two begin so
        ("1,7,0", ["GPU-ab2"]),  # what follows one that is not there is not visible
        ("0,0", ["GPU-aa1"]),
        ("", []),
        ("-1", []),
    ],
)
def test_cuda_visible_devices_is_read_as_cuda_reads_it(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, visible: str | None, expected: list[str]
) -> None:
    simulated(monkeypatch, tmp_path, *THREE)
    assert uuids(visible) == expected


def test_of_a_divided_device_the_parts_are_devices(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    parts = [{"uuid": f"MIG-{n}", "name": "MIG 1g", "cores": 9, "memory": 5} for n in range(2)]
    simulated(monkeypatch, tmp_path, gpu("GPU-a", parts=parts), gpu("GPU-b"))
    assert uuids(None) == ["MIG-0", "MIG-1", "GPU-b"]
    assert uuids("MIG-1") == ["MIG-1"]
    assert uuids("0,1") == ["MIG-0", "GPU-b"]
    assert visible_gpus({})[1].is_part


def test_a_lost_device_is_left_out(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    simulated(monkeypatch, tmp_path, gpu("GPU-a", is_lost=True), gpu("GPU-b"))
    assert uuids(None) == ["GPU-b"]


GPU = Gpu(
    index=3,
    uuid="GPU-a",
    name="NVIDIA L4",
    compute_capability="8.9",
    cores=7424,
    memory_bytes=24 << 30,
    driver="550",
)


def test_a_process_sees_this_device_and_no_other_in_the_order_of_the_driver() -> None:
    claim = Claim(uuid="GPU-a", directory="/d", wait_seconds=1.0)
    assert MeasuredGpu(GPU, claim).variables == {
        "CUDA_VISIBLE_DEVICES": "GPU-a",
        "CUDA_DEVICE_ORDER": "PCI_BUS_ID",
    }


# An error of a device that stays is told from one of a single call.


@pytest.mark.parametrize(
    "words",
    [
        "CUDA Runtime Error: cudaErrorIllegalAddress (700): an illegal memory access",
        "CUDALaunch Error: CUDA_ERROR_ILLEGAL_ADDRESS\n grid=(1,1,1)",
        "CUDALaunch Error: CUDA_ERROR_LAUNCH_FAILED",
        "CUDA failure 719: unspecified launch failure ; GPU=0",
        "CUDA Runtime Error: cudaErrorMisalignedAddress (716): misaligned address",
        "CUDA error: device-side assert triggered",
        "CUDA Runtime Error: cudaErrorUnknown (999): unknown error",
        "CUDA Runtime Error: cudaErrorECCUncorrectable (214): uncorrectable ECC error",
    ],
)
def test_what_stays_goes_on(words: str) -> None:
    with pytest.raises(RuntimeError, match="CUDA"):
        raise_lost_device(RuntimeError(words))


@pytest.mark.parametrize(
    "words",
    [
        "CUDA Runtime Error: cudaErrorMemoryAllocation (2): out of memory",
        "CUDA Runtime Error: cudaErrorStreamCaptureImplicit (906): operation would make",
        "CUDALaunch Error: CUDA_ERROR_INVALID_VALUE",
        "shapes do not match",
        "illegal instruction in the model",
        "",
    ],
)
def test_another_error_is_for_who_caught_it(words: str) -> None:
    raise_lost_device(RuntimeError(words))
