"""The GPUs that a target is measured on here: the right ones, held by us during a measurement, and
idle."""

import re
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Literal, NamedTuple

from tunegate.artifacts.measurements import Gpu, GpuState
from tunegate.config import TargetConfig
from tunegate.errors import EnvironmentUnfitError
from tunegate.system.machine.device_lock import claim_on, held_device
from tunegate.system.nvidia.clocks import locked_clocks, repair_clocks
from tunegate.system.nvidia.device_errors import is_device_lost
from tunegate.system.nvidia.gpus import MeasuredGpu, visible_gpus
from tunegate.system.nvidia.kernel_clock import why_no_kernel_clock
from tunegate.system.nvidia.nvml import state_of
from tunegate.wording import RUN_DOCTOR


def gpus_of(target: TargetConfig) -> tuple[MeasuredGpu, ...]:
    """Returns all visible devices of the first one's kind: times of another kind would not be this
    target's. Raises EnvironmentUnfitError if there is none, or it is not the expected one."""
    gpus = visible_gpus()
    if not gpus:
        message = (
            f"target {target.name}: no CUDA device is visible here. Run this on the GPU runner; "
            f"tunegate doctor says what it sees."
        )
        raise EnvironmentUnfitError(message)
    first = gpus[0]
    if target.expect_gpu and not is_expected(first.name, target.expect_gpu):
        message = (
            f"target {target.name}: expect-gpu is {target.expect_gpu}, but this machine has "
            f"{first.name} ({first.uuid}). Send the job to another runner (targets[].runner), or "
            f"change expect-gpu."
        )
        raise EnvironmentUnfitError(message)
    return tuple(
        MeasuredGpu(gpu, claim_on(gpu.uuid, wait_seconds=target.device_wait_seconds))
        for gpu in gpus
        if (gpu.name, gpu.memory_bytes) == (first.name, first.memory_bytes)
    )


def is_expected(name: str, words: str) -> bool:
    """Returns whether the expected words are whole words of the device's name: L4 occurs in NVIDIA
    L4, not in NVIDIA L40S."""
    return re.search(rf"(?<!\w){re.escape(words)}(?!\w)", name, re.IGNORECASE) is not None


def loss_among(gpus: Iterable[Gpu], doing: str, reason: str) -> str:
    """Returns which of these devices the driver no longer knows, and what to do; '' if it knows
    them all. `reason` is the symptom that was seen."""
    present = {gpu.uuid for gpu in visible_gpus()}
    absent = next((gpu for gpu in gpus if gpu.uuid not in present), None)
    return loss_of(absent.name, absent.uuid, doing, reason) if absent is not None else ""


def loss_of(name: str, uuid: str, doing: str, reason: str) -> str:
    """Returns the message for a lost device. A reason that is such a message keeps its symptom."""
    symptom = reason.removesuffix(f" {RUN_DOCTOR}.").rpartition(_SEEN)[2].rstrip(".")
    hint = f"{_SEEN}{symptom}." if symptom else ""
    return f"{name} ({uuid}) was lost {doing}, the driver no longer knows it.{hint} {RUN_DOCTOR}."


_SEEN = " Seen first: "


def error_on(gpu: Gpu, reason: str) -> str:
    """Returns the message for a device error that ended a measurement, '' if the reason is
    another."""
    if not is_device_lost(reason):
        return ""
    return (
        f"{gpu.name} ({gpu.uuid}) ended with an error while models were timed: "
        f"{reason.rstrip('.')}. A kernel, the driver or the device is at fault. {RUN_DOCTOR}."
    )


class Prepared(NamedTuple):
    """The state of the clocks, and the notes for the report."""

    clocks: Literal["locked", "floating"]
    notes: tuple[str, ...]


@contextmanager
def prepare_devices(gpus: Sequence[MeasuredGpu], target: TargetConfig) -> Iterator[Prepared]:
    """Waits until the devices are idle, and locks their clocks if the target asks for it and the
    machine permits it. Raises EnvironmentUnfitError."""
    directory = Path(gpus[0].claim.directory)  # one for all devices of the host
    notes = [
        f"the clocks of {uuid} were locked by a run that is gone"
        for uuid in repair_clocks(directory)
    ]
    lock_count = 0
    with ExitStack() as stack:
        for each in gpus:
            with held_device(each.claim):
                wait_until_idle(each.gpu, wait_seconds=target.device_wait_seconds)
            if target.lock_clocks_mhz is None:
                continue
            if stack.enter_context(locked_clocks(each.gpu, target.lock_clocks_mhz, directory)):
                lock_count += 1
            else:
                notes.append(f"{each.gpu.name}: its clocks may not be locked here; they float")
        yield Prepared("locked" if lock_count == len(gpus) else "floating", tuple(notes))


@contextmanager
def held_together(gpus: Sequence[MeasuredGpu]) -> Iterator[bool]:
    """Holds all devices until the end if the host permits CUPTI: then a run's workers measure
    beside each other, with nobody else in between. Yields False if it does not, and each
    measurement takes its turn. Raises EnvironmentUnfitError."""
    if why_no_kernel_clock(gpus[0].variables):
        yield False
        return
    with ExitStack() as stack:
        for each in gpus:
            stack.enter_context(held_device(each.claim))
        yield True


# Checks that nobody else uses a measured GPU.

_POLL_SECONDS = 0.5

_StateOf = Callable[[str], GpuState | None]


def wait_until_idle(gpu: Gpu, *, wait_seconds: float, look: _StateOf = state_of) -> None:
    """Waits until nothing runs on the device. Hold its lock meanwhile: our other runs may keep
    memory there, but run nothing without the lock. Raises EnvironmentUnfitError if somebody else
    continues."""
    deadline = time.monotonic() + wait_seconds
    while True:
        state = look(gpu.uuid)
        if state is None or not state.processes or state.busy_percent == 0:
            return
        if time.monotonic() >= deadline:
            raise EnvironmentUnfitError(_refusal(gpu, state, wait_seconds))
        time.sleep(min(_POLL_SECONDS, max(0.0, deadline - time.monotonic())))


def _refusal(gpu: Gpu, state: GpuState, wait_seconds: float) -> str:
    """Returns the error for a device that stays busy. In a container the driver's process numbers
    mean little, but a person may know them."""
    pids = ", ".join(str(pid) for pid in state.processes[:5])
    busy = "" if state.busy_percent is None else f", {state.busy_percent}% busy"
    return (
        f"{gpu.name} ({gpu.uuid}): something else still runs on this device after "
        f"{wait_seconds:g} s (processes {pids}{busy}). Nothing measured beside it would be "
        "right: end it, or give this runner a device of its own."
    )
