"""The door, and the simulation behind it that stands for a driver."""

from __future__ import annotations

import importlib
import importlib.util
import sys
from collections.abc import Iterator
from pathlib import Path

import pynvml
import pytest

from tests.support.simulated import simulated_gpus
from tests.support.simulated.simulated_cupti.cupti import cupti
from tests.support.simulated.simulated_gpus import CUPTI, gpu, simulated
from tunegate.errors import EnvironmentUnfitError
from tunegate.system.nvidia.gpus import visible_gpus
from tunegate.system.nvidia.kernel_clock import KernelClock, kernel_clock, why_no_kernel_clock
from tunegate.system.nvidia.nvml import asked, nvml, text

SIMULATION = Path(simulated_gpus.__file__).parent / "simulated_nvml/pynvml.py"


def test_without_a_driver_there_is_no_library() -> None:
    with nvml() as library:
        assert library is None


def test_without_the_binding_there_is_no_library(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pynvml", None)
    with nvml() as library:
        assert library is None


def test_what_a_device_cannot_say_is_none(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    simulated(monkeypatch, tmp_path, gpu("GPU-a"))
    with nvml() as library:
        assert library is not None
        handle = library.nvmlDeviceGetHandleByIndex(0)
        assert asked(library, library.nvmlDeviceGetEccMode, handle) is None
        assert asked(library, library.nvmlDeviceGetName, handle) == "NVIDIA L4"


def test_text_may_come_as_bytes() -> None:
    assert text(b"NVIDIA L4") == text("NVIDIA L4") == "NVIDIA L4"


def test_every_function_of_the_simulation_is_one_of_the_real_binding() -> None:
    spec = importlib.util.spec_from_file_location("simulation", SIMULATION)
    assert spec is not None
    assert spec.loader is not None
    simulation = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(simulation)
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


def test_as_many_inferences_are_averaged_as_take_the_time(clock: KernelClock) -> None:
    ran = []

    def inference() -> None:
        ran.append(1)
        cupti.kernel_ran(10_000 if len(ran) % 2 else 20_000)

    (mean,) = clock.repeat_ns(inference, repeats=1, milliseconds=1)
    assert len(ran) == 1 + 100
    assert mean == 15_000


def test_kernels_from_before_do_not_count(clock: KernelClock) -> None:
    cupti.kernel_ran(1_000_000)
    assert clock.repeat_ns(lambda: cupti.kernel_ran(50), repeats=1, milliseconds=0) == (50,)


def test_a_kernel_that_is_missed_is_no_fast_one(clock: KernelClock) -> None:
    ran = []

    def inference() -> None:
        ran.append(1)
        if len(ran) != 5:
            cupti.kernel_ran(1_000)

    with pytest.raises(EnvironmentUnfitError, match="9 kernels in 10 inferences"):
        clock.repeat_ns(inference, repeats=1, milliseconds=0.01)
    with pytest.raises(EnvironmentUnfitError, match="0 kernels in 1 inferences"):
        clock.repeat_ns(lambda: None, repeats=1, milliseconds=1)


@pytest.mark.skipif(bool(visible_gpus()), reason="there is a CUDA device")
def test_a_machine_without_a_driver_has_none() -> None:
    """Asked of the real library."""
    assert kernel_clock() is None
    assert why_no_kernel_clock({}).startswith("CUPTI refuses: CUDA driver is not found")


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
