"""Locked while it measures; free again, whatever ends the run."""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from pathlib import Path

import msgspec
import pytest

from tests.support.simulated.simulated_gpus import SimulatedGpus, gpu, simulated
from tunegate.system.nvidia.clocks import Note, locked_clocks, repair_clocks
from tunegate.system.nvidia.gpus import visible_gpus

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
