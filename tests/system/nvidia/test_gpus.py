"""The devices that a CUDA program started here would see."""

import importlib
import importlib.util
import itertools
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pynvml
import pytest

from tests.support.present import present
from tests.support.simulated import simulated_gpus
from tests.support.simulated.simulated_cupti.cupti import cupti
from tests.support.simulated.simulated_gpus import CUPTI, L4, Simulate, SimulatedGpus, gpu
from tunegate.artifacts.measurements import GpuState
from tunegate.errors import EnvironmentUnfitError
from tunegate.system.nvidia import gpus
from tunegate.system.nvidia.clocks import Note, locked_clocks, repair_clocks
from tunegate.system.nvidia.device_errors import raise_lost_device
from tunegate.system.nvidia.kernel_clock import KernelClock, kernel_clock, why_no_kernel_clock
from tunegate.system.nvidia.nvml import answer_or_none, busy_meter, nvml, state_of
from tunegate.system.nvidia.session import wait_until_idle

THREE = (gpu("GPU-aa1"), gpu("GPU-ab2", name="NVIDIA H100", capability=[9, 0]), gpu("GPU-c3"))


def uuids(visible: str | None) -> list[str]:
    variables = {} if visible is None else {"CUDA_VISIBLE_DEVICES": visible}
    return [found.uuid for found in gpus.visible_gpus(variables)]


def test_a_device_is_known_by_what_decides_its_speed(simulate: Simulate) -> None:
    simulate(*THREE)
    found = gpus.visible_gpus({})[1]
    assert (found.name, found.uuid, found.compute_capability) == ("NVIDIA H100", "GPU-ab2", "9.0")
    assert (found.power_cap_watts, found.max_sm_mhz, found.driver) == (72.0, 2040, "570.1")
    assert (found.is_part, found.ecc) == (False, None)
    assert gpus.fingerprint_of(found).units == 7424


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
    simulate: Simulate, visible: str | None, expected: list[str]
) -> None:
    simulate(*THREE)
    assert uuids(visible) == expected


def test_of_a_divided_device_the_parts_are_devices(simulate: Simulate) -> None:
    parts = [{"uuid": f"MIG-{n}", "name": "MIG 1g", "cores": 9, "memory": 5} for n in range(2)]
    simulate(gpu("GPU-a", parts=parts), gpu("GPU-b"))
    assert uuids(None) == ["MIG-0", "MIG-1", "GPU-b"]
    assert uuids("MIG-1") == ["MIG-1"]
    assert uuids("0,1") == ["MIG-0", "GPU-b"]
    assert gpus.visible_gpus({})[1].is_part


def test_a_lost_device_is_left_out(simulate: Simulate) -> None:
    simulate(gpu("GPU-a", is_lost=True), gpu("GPU-b"))
    assert uuids(None) == ["GPU-b"]


@pytest.mark.parametrize(
    ("capability", "precision", "is_told"),
    [
        *(("9.0", "float16", True), ("10.0", "tfloat32", True), ("8.9", "float16", False)),
        *(("9.0", "float32", False), ("9.0", "", False)),
    ],
)
def test_where_tvm_does_not_use_the_instructions_of_tensor_cores_a_line_says_so(
    capability: str, precision: str, is_told: bool
) -> None:
    device = msgspec.structs.replace(L4, name="NVIDIA H200", compute_capability=capability)
    line = gpus.why_a_library_wins(precision, [device])
    assert ("tensor cores of NVIDIA H200 (wgmma)" in line) is is_told
    assert gpus.why_a_library_wins(precision, []) == ""


# An error of a device that stays is told from one of a single call.


@pytest.mark.parametrize(
    "words",
    [
        "CUDA Runtime Error: cudaErrorIllegalAddress (700): an illegal memory access",
        "CUDALaunch Error: CUDA_ERROR_ILLEGAL_ADDRESS\n grid=(1,1,1)",
        "CUDALaunch Error: CUDA_ERROR_LAUNCH_FAILED",
        "CUDA failure 719: unspecified launch failure ; GPU=0",
        "CUDA failure 999: unknown error ; GPU=0",
        "CUDA failure 717: operation not supported on global/shared address space ; GPU=0",
        "CUDA failure 718: invalid program counter ; GPU=0",
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


# Locked while it measures; free again, whatever ends the run.

RUN = """
import sys, time
from pathlib import Path
from tunegate.system.nvidia.clocks import locked_clocks
from tunegate.system.nvidia.gpus import visible_gpus
with locked_clocks(visible_gpus()[0], 1410, Path(sys.argv[1])) as is_locked:
    print(is_locked, flush=True)
    time.sleep(60)
"""


@pytest.fixture
def machine(simulate: Simulate) -> SimulatedGpus:
    return simulate(gpu("GPU-a"))


def is_free(machine: SimulatedGpus, seconds: float = 60) -> bool:
    deadline = time.monotonic() + seconds
    while "locked" in machine[0] and time.monotonic() < deadline:
        time.sleep(0.02)
    return "locked" not in machine[0]


def notes(directory: Path) -> list[Path]:
    return list(directory.glob("tunegate-clocks-*"))


def test_clocks_are_locked_inside_and_free_outside(machine: SimulatedGpus, tmp_path: Path) -> None:
    with locked_clocks(gpus.visible_gpus()[0], 1410, tmp_path) as is_locked:
        assert is_locked
        assert machine[0]["locked"] == [1410, 1410]
    assert "locked" not in machine[0]
    assert notes(tmp_path) == []


def test_an_error_inside_frees_them_too(machine: SimulatedGpus, tmp_path: Path) -> None:
    with (
        pytest.raises(RuntimeError, match="boom"),
        locked_clocks(gpus.visible_gpus()[0], 1410, tmp_path),
    ):
        raise RuntimeError("boom")
    assert "locked" not in machine[0]


def test_where_it_is_not_permitted_they_float(machine: SimulatedGpus, tmp_path: Path) -> None:
    machine.change(0, may_lock=False)
    with locked_clocks(gpus.visible_gpus()[0], 1410, tmp_path) as is_locked:
        assert not is_locked
    assert notes(tmp_path) == []


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM])
def test_a_run_that_is_killed_leaves_no_locked_clock(
    machine: SimulatedGpus, tmp_path: Path, number: signal.Signals
) -> None:
    with subprocess.Popen(
        [sys.executable, "-c", RUN, str(tmp_path)], stdout=subprocess.PIPE, text=True
    ) as run:
        assert present(run.stdout).readline() == "True\n"
        assert machine[0]["locked"] == [1410, 1410]
        run.send_signal(number)
    assert is_free(machine)


def test_what_a_crash_of_the_machine_left_locked_the_next_run_frees(
    machine: SimulatedGpus, tmp_path: Path
) -> None:
    machine.change(0, locked=[1410, 1410])
    note = Note(uuid="GPU-a", mhz=1410, pid=2**22 - 1, started=1.0)
    (tmp_path / "tunegate-clocks-GPU-a.json").write_bytes(msgspec.json.encode(note))
    assert repair_clocks(tmp_path) == ("GPU-a",)
    assert "locked" not in machine[0]
    assert notes(tmp_path) == []


def test_clocks_of_another_run_are_left_alone(machine: SimulatedGpus, tmp_path: Path) -> None:
    with locked_clocks(gpus.visible_gpus()[0], 1410, tmp_path):
        assert repair_clocks(tmp_path) == ()
        assert machine[0]["locked"] == [1410, 1410]


def test_a_note_that_cannot_be_read_repairs_nothing(machine: SimulatedGpus, tmp_path: Path) -> None:
    (tmp_path / "tunegate-clocks-GPU-a.json").write_text("{")
    assert repair_clocks(tmp_path) == ()


def test_the_guard_outlives_the_signals_that_end_a_job(simulate: Simulate, tmp_path: Path) -> None:
    machine = simulate(gpu("GPU-a"))
    command = [sys.executable, "-m", "tunegate.system.nvidia.clocks", "GPU-a", "900"]
    with subprocess.Popen(
        [*command, str(tmp_path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as guard:
        assert present(guard.stdout).readline() == b"locked\n"
        for number in (signal.SIGTERM, signal.SIGINT):
            os.kill(guard.pid, number)
        time.sleep(0.1)
        assert guard.poll() is None
        assert machine[0]["locked"] == [900, 900]
        present(guard.stdin).close()
        assert guard.wait(60) == 0
    assert "locked" not in machine[0]


def test_a_state_names_what_slows_the_device_down(simulate: Simulate) -> None:
    simulate(gpu("GPU-a", reasons=0x4 | 0x20 | 0x1, processes=[7, 3]))
    state = present(state_of("GPU-a"))
    assert state.throttled == ("power cap", "temperature (software)")
    assert state.processes == (3, 7)
    assert (state.sm_mhz, state.celsius, state.watts) == (2040, 40, 60.0)


def test_of_a_device_that_is_not_there_nothing_is_known(simulate: Simulate) -> None:
    assert state_of("GPU-a") is None
    simulate(gpu("GPU-a"))
    assert state_of("GPU-b") is None


def test_somebody_who_goes_in_time_is_waited_for() -> None:
    states = itertools.chain([GpuState(processes=(7,))], itertools.repeat(GpuState()))
    wait_until_idle(L4, wait_seconds=5, look=lambda _: next(states))


def test_somebody_who_stays_makes_the_machine_unfit() -> None:
    busy = GpuState(processes=(7, 8), busy_percent=97)
    with pytest.raises(EnvironmentUnfitError, match=r"NVIDIA L4 .*\(processes 7, 8, 97% busy\)"):
        wait_until_idle(L4, wait_seconds=0, look=lambda _: busy)


def test_the_busy_share_of_a_moment_is_the_mean_of_the_devices(simulate: Simulate) -> None:
    with busy_meter(["GPU-one"]) as without_driver:
        assert without_driver() is None
    machine = simulate(gpu("GPU-one", busy=40), gpu("GPU-two"))
    with busy_meter(["GPU-one", "GPU-two", "GPU-other"]) as meter:
        assert meter() == 20.0
        machine.change(1, busy=60)
        assert meter() == 50.0


# The door, and the simulation behind it that stands for a driver.

SIMULATION = Path(simulated_gpus.__file__).parent / "simulated_nvml/pynvml.py"


def test_without_the_binding_there_is_no_library(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pynvml", None)
    with nvml() as library:
        assert library is None


def test_what_a_device_cannot_say_is_none(simulate: Simulate) -> None:
    simulate(gpu("GPU-a"))
    with nvml() as library:
        assert library is not None
        handle = library.nvmlDeviceGetHandleByIndex(0)
        assert answer_or_none(library, library.nvmlDeviceGetEccMode, handle) is None
        assert answer_or_none(library, library.nvmlDeviceGetName, handle) == "NVIDIA L4"


def test_every_function_of_the_simulation_is_one_of_the_real_binding() -> None:
    spec = present(importlib.util.spec_from_file_location("simulation", SIMULATION))
    simulation = importlib.util.module_from_spec(spec)
    present(spec.loader).exec_module(simulation)
    names = [name for name in vars(simulation) if name.startswith(("nvml", "NVML"))]
    assert len(names) > 20
    assert [name for name in names if not hasattr(pynvml, name)] == []
    assert simulation.NVML_CLOCK_SM == pynvml.NVML_CLOCK_SM
    assert simulation.NVML_CLOCK_MEM == pynvml.NVML_CLOCK_MEM


@pytest.fixture
def clock() -> Iterator[KernelClock]:
    yield KernelClock(cupti)
    cupti.activity_flush_all(1)


def test_an_inference_takes_as_long_as_all_its_kernels_and_nothing_else(clock: KernelClock) -> None:
    def inference() -> None:
        cupti.kernel_ran(3000)
        cupti.kernel_ran(2000)
        cupti.kernel_ran(9000, cupti.ActivityKind.MEMCPY)

    assert clock.repeat_ns(inference, repeats=3, milliseconds=0.05) == (5000, 5000, 5000)


def test_a_kernel_that_is_missed_is_no_fast_one(clock: KernelClock) -> None:
    ran = []

    def inference() -> None:
        ran.append(1)
        if len(ran) != 5:
            cupti.kernel_ran(1_000)

    assert clock.repeat_ns(inference, repeats=1, milliseconds=0.01) == (1_000,)
    assert len(ran) == 1 + 10 + 10  # measured again
    with pytest.raises(EnvironmentUnfitError, match="0 kernels in 1 inferences"):
        clock.repeat_ns(lambda: None, repeats=1, milliseconds=1)


@pytest.mark.skipif(bool(gpus.visible_gpus()), reason="there is a CUDA device")
def test_a_machine_without_a_driver_has_no_library() -> None:
    """Asked of the real library."""
    assert kernel_clock() is None
    assert why_no_kernel_clock({}).startswith("CUPTI refuses: CUDA driver is not found")


def test_a_python_without_the_library_names_the_extra(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "cupti.py").write_text("raise ImportError('no CUPTI')")
    monkeypatch.syspath_prepend(str(tmp_path))
    assert why_no_kernel_clock({}) == "no CUPTI: pip install 'tunegate[nvidia]'"


def test_a_host_that_permits_it_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(CUPTI))
    assert why_no_kernel_clock({}) == ""


def test_the_simulation_has_the_names_of_the_real_library() -> None:
    real = importlib.import_module("cupti.cupti")
    ours = [name for name in vars(cupti) if name.startswith("activity_")]
    assert len(ours) == 3
    assert all(callable(getattr(real, name)) for name in ours)
    assert issubclass(real.cuptiError, Exception)
    for kind in cupti.ActivityKind:
        assert real.ActivityKind[kind.name] == kind
    assert {"start", "end", "kind"} <= set(dir(real.ActivityKernel9))
