from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.support.simulated.simulated_gpus import gpu, simulated


def test_the_guard_outlives_the_signals_that_end_a_job(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    machine = simulated(monkeypatch, tmp_path, gpu("GPU-a"))
    command = [sys.executable, "-m", "tunegate.system.nvidia.clock_guard", "GPU-a", "900"]
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
