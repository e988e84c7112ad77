"""What the kernel says of a process."""

from __future__ import annotations

import os
import signal
import subprocess
import time

from tunegate.system.processes.child import process_state


def test_our_own_state_is_that_of_a_process_that_runs() -> None:
    state = process_state(os.getpid())
    assert state.resident_bytes > 10_000_000
    assert not state.is_stopped


def test_a_process_that_is_stopped_is_said_to_be() -> None:
    with subprocess.Popen(["sleep", "60"]) as process:
        process.send_signal(signal.SIGSTOP)
        until = time.monotonic() + 60
        while not process_state(process.pid).is_stopped and time.monotonic() < until:
            time.sleep(0.01)
        is_stopped = process_state(process.pid).is_stopped
        process.kill()
    assert is_stopped
    assert process_state(process.pid) == (0, False)
