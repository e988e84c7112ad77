"""The check that nobody else uses a GPU that is measured."""

from __future__ import annotations

import time
from collections.abc import Callable

from tunegate.artifacts.gpus import Gpu, GpuState
from tunegate.edges.nvidia.state import state_of
from tunegate.errors import EnvironmentUnfitError

_POLL_SECONDS = 0.5

_StateOf = Callable[[str], GpuState | None]


def wait_until_idle(gpu: Gpu, *, wait_seconds: float, look: _StateOf = state_of) -> None:
    """Waits until nothing runs on the device. Hold its lock meanwhile: other runs of
    ours may keep memory there, but run nothing without the lock. Raises
    EnvironmentUnfitError when somebody else goes on."""
    deadline = time.monotonic() + wait_seconds
    while True:
        state = look(gpu.uuid)
        if state is None or not state.processes or state.busy_percent == 0:
            return
        if time.monotonic() >= deadline:
            raise EnvironmentUnfitError(_refusal(gpu, state, wait_seconds))
        time.sleep(min(_POLL_SECONDS, max(0.0, deadline - time.monotonic())))


def _refusal(gpu: Gpu, state: GpuState, wait_seconds: float) -> str:
    """The error for a device that stays busy. In a container the driver's process numbers say
    little, but a person may know them."""
    shown = ", ".join(str(pid) for pid in state.processes[:5])
    busy = "" if state.busy_percent is None else f", {state.busy_percent}% busy"
    return (
        f"{gpu.name} ({gpu.uuid}): something else still runs on this device after "
        f"{wait_seconds:g} s (processes {shown}{busy}). Nothing measured beside it would be "
        "right: end it, or give this runner a device of its own."
    )
