"""Locked while it measures; free again, whatever ends the run."""

from __future__ import annotations

import itertools
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import msgspec
import pytest

from tests.support.simulated.simulated_gpus import SimulatedGpus, gpu, simulated
from tunegate.artifacts.measurements import Gpu, GpuState
from tunegate.errors import EnvironmentUnfitError
from tunegate.system.nvidia.clocks import Note, locked_clocks, repair_clocks
from tunegate.system.nvidia.gpus import visible_gpus
from tunegate.system.nvidia.nvml import busy_meter, state_of
from tunegate.system.nvidia.session import wait_until_idle

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
def machine(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> SimulatedGpus:
    return simulated(monkeypatch, tmp_path, gpu("GPU-a"))


def is_free(machine: SimulatedGpus, seconds: float = 10) -> bool:
    deadline = time.monotonic() + seconds
    while "locked" in machine[0] and time.monotonic() < deadline:
        time.sleep(0.02)
    return "locked" not in machine[0]


def notes(directory: Path) -> list[Path]:
    return list(directory.glob("tunegate-clocks-*"))


def test_clocks_are_locked_inside_and_free_outside(machine: SimulatedGpus, tmp_path: Path) -> None:
    with locked_clocks(visible_gpus()[0], 1410, tmp_path) as is_locked:
        assert is_locked
        assert machine[0]["locked"] == [1410, 1410]
    assert "locked" not in machine[0]
    assert notes(tmp_path) == []


def test_an_error_inside_frees_them_too(machine: SimulatedGpus, tmp_path: Path) -> None:
    with (
        pytest.raises(RuntimeError, match="boom"),
        locked_clocks(visible_gpus()[0], 1410, tmp_path),
    ):
        raise RuntimeError("boom")
    assert "locked" not in machine[0]


def test_where_it_is_not_permitted_they_float(machine: SimulatedGpus, tmp_path: Path) -> None:
    machine.change(0, may_lock=False)
    with locked_clocks(visible_gpus()[0], 1410, tmp_path) as is_locked:
        assert not is_locked
    assert notes(tmp_path) == []


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM])
def test_a_run_that_is_killed_leaves_no_locked_clock(
    machine: SimulatedGpus, tmp_path: Path, number: signal.Signals
) -> None:
    with subprocess.Popen(
        [sys.executable, "-c", RUN, str(tmp_path)], stdout=subprocess.PIPE, text=True
    ) as run:
        assert run.stdout is not None
        assert run.stdout.readline() == "True\n"
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


def test_clocks_that_another_run_holds_are_left_alone(
    machine: SimulatedGpus, tmp_path: Path
) -> None:
    with locked_clocks(visible_gpus()[0], 1410, tmp_path):
        assert repair_clocks(tmp_path) == ()
        assert machine[0]["locked"] == [1410, 1410]


def test_a_note_that_cannot_be_read_repairs_nothing(machine: SimulatedGpus, tmp_path: Path) -> None:
    (tmp_path / "tunegate-clocks-GPU-a.json").write_text("{")
    assert repair_clocks(tmp_path) == ()


def test_the_guard_outlives_the_signals_that_end_a_job(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    machine = simulated(monkeypatch, tmp_path, gpu("GPU-a"))
    command = [sys.executable, "-m", "tunegate.system.nvidia.clocks", "GPU-a", "900"]
    with subprocess.Popen(
        [*command, str(tmp_path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as guard:
        assert guard.stdin is not None
        assert guard.stdout is not None
        assert guard.stdout.readline() == b"locked\n"
        for number in (signal.SIGTERM, signal.SIGINT):
            os.kill(guard.pid, number)
        time.sleep(0.1)
        assert guard.poll() is None
        assert machine[0]["locked"] == [900, 900]
        guard.stdin.close()
        assert guard.wait(60) == 0
    assert "locked" not in machine[0]


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


GPU = Gpu(
    index=0,
    uuid="GPU-a",
    name="NVIDIA L4",
    compute_capability="8.9",
    cores=7424,
    memory_bytes=1,
    driver="570.1",
)


def test_an_idle_device_is_taken_at_once() -> None:
    wait_until_idle(GPU, wait_seconds=0, look=lambda _: GpuState())


def test_somebody_who_goes_in_time_is_waited_for() -> None:
    states = itertools.chain([GpuState(processes=(7,))], itertools.repeat(GpuState()))
    wait_until_idle(GPU, wait_seconds=5, look=lambda _: next(states))


def test_a_process_that_runs_nothing_disturbs_nobody() -> None:
    wait_until_idle(GPU, wait_seconds=0, look=lambda _: GpuState(processes=(7,), busy_percent=0))


def test_somebody_who_stays_makes_the_machine_unfit() -> None:
    busy = GpuState(processes=(7, 8), busy_percent=97)
    with pytest.raises(EnvironmentUnfitError, match=r"NVIDIA L4 .*\(processes 7, 8, 97% busy\)"):
        wait_until_idle(GPU, wait_seconds=0, look=lambda _: busy)


def test_a_device_that_does_not_answer_is_not_waited_for() -> None:
    wait_until_idle(GPU, wait_seconds=60, look=lambda _: None)


def test_the_busy_share_of_a_moment_is_the_mean_of_the_devices(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    with busy_meter(["GPU-one"]) as without_driver:
        assert without_driver() is None
    machine = simulated(monkeypatch, tmp_path, gpu("GPU-one", busy=40), gpu("GPU-two"))
    with busy_meter(["GPU-one", "GPU-two", "GPU-other"]) as meter:
        assert meter() == 20.0
        machine.change(1, busy=60)
        assert meter() == 50.0
