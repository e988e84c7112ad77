"""The door, and the simulation behind it that stands for a driver."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path

import pynvml
import pytest

from tests.support.simulated import simulated_gpus
from tests.support.simulated.simulated_gpus import gpu, simulated
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
