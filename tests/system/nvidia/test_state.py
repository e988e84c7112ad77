from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.simulated.simulated_gpus import gpu, simulated
from tunegate.system.nvidia.nvml import state_of


def test_a_state_names_what_slows_the_device_down(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    simulated(monkeypatch, tmp_path, gpu("GPU-a", reasons=0x4 | 0x20 | 0x1, processes=[7, 3]))
    state = state_of("GPU-a")
    assert state is not None
    assert state.throttled == ("power cap", "temperature (software)")
    assert state.processes == (3, 7)
    assert (state.sm_mhz, state.celsius, state.watts) == (2040, 40, 60.0)


def test_being_idle_slows_nothing_down(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    simulated(monkeypatch, tmp_path, gpu("GPU-a", reasons=0x1))
    state = state_of("GPU-a")
    assert state is not None
    assert state.throttled == ()


def test_of_a_device_that_is_not_there_nothing_is_known(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    assert state_of("GPU-a") is None
    simulated(monkeypatch, tmp_path, gpu("GPU-a"))
    assert state_of("GPU-b") is None
