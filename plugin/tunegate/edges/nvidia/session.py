"""The GPUs that a target is measured on here: the right ones, ours for the
time of a measurement, idle."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Literal, NamedTuple

from tunegate.config import TargetConfig
from tunegate.edges.machine.device_lock import claim_on, held_device
from tunegate.edges.nvidia.clocks import locked_clocks, repair_clocks
from tunegate.edges.nvidia.gpus import visible_gpus
from tunegate.edges.nvidia.idle import wait_until_idle
from tunegate.edges.nvidia.kernel_clock import why_no_kernel_clock
from tunegate.edges.nvidia.measured_gpu import MeasuredGpu
from tunegate.errors import EnvironmentUnfitError


def gpus_of(target: TargetConfig) -> tuple[MeasuredGpu, ...]:
    """All visible devices that are like the first one: times of another would not be
    of this target. Raises EnvironmentUnfitError where there is none, or it is not the
    one that the target expects."""
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


def is_expected(name: str, expected: str) -> bool:
    """Whole words of the device's name: L4 is a part of NVIDIA L4 and not of NVIDIA L40S."""
    return re.search(rf"(?<!\w){re.escape(expected)}(?!\w)", name, re.IGNORECASE) is not None


class Prepared(NamedTuple):
    """The state of the clocks, and the notes for the report."""

    clocks: Literal["locked", "floating"]
    notes: tuple[str, ...]


@contextmanager
def prepared(gpus: Sequence[MeasuredGpu], target: TargetConfig) -> Iterator[Prepared]:
    """Shown to be idle, and with clocks locked where the target asks for it and the machine permits
    it. Raises EnvironmentUnfitError."""
    directory = Path(gpus[0].claim.directory)  # one for all devices of the host
    notes = [
        f"the clocks of {uuid} were locked by a run that is gone"
        for uuid in repair_clocks(directory)
    ]
    locked = 0
    with ExitStack() as stack:
        for each in gpus:
            with held_device(each.claim):
                wait_until_idle(each.gpu, wait_seconds=target.device_wait_seconds)
            if target.lock_clocks_mhz is None:
                continue
            if stack.enter_context(locked_clocks(each.gpu, target.lock_clocks_mhz, directory)):
                locked += 1
            else:
                notes.append(f"{each.gpu.name}: its clocks may not be locked here; they float")
        yield Prepared("locked" if locked == len(gpus) else "floating", tuple(notes))


@contextmanager
def held_together(gpus: Sequence[MeasuredGpu]) -> Iterator[bool]:
    """All of them until the end, where the host permits to ask CUPTI for the times of kernels: then
    the workers of one run measure beside each other, and nobody else in between. False where it
    does not, and whoever measures takes its turn. Raises EnvironmentUnfitError."""
    if why_no_kernel_clock(gpus[0].variables):
        yield False
        return
    with ExitStack() as stack:
        for each in gpus:
            stack.enter_context(held_device(each.claim))
        yield True
