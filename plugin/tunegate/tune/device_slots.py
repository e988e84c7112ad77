"""Devices that the workers of a tuning run measure on: one each, or one that they share."""

import os
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from itertools import cycle, islice
from pathlib import Path

import msgspec

from tunegate.system.machine.cores import physical_cores
from tunegate.system.machine.device_lock import Claim, held_device
from tunegate.system.nvidia.gpus import MeasuredGpu
from tunegate.tune.protocol import Measure, Placement, Slot

_FOR_ANOTHER_WORKER_SECONDS = 600.0
"""The worker's own limit is shorter: a hanging worker is killed, and the next one's turn comes."""


def on_cpu(workers: int, directory: Path, limit_seconds: float) -> list[Placement]:
    """Returns a slot for every core with hardware of its own, because candidates use one core each
    while tuning."""
    slots = tuple(
        _own_slot(str(n), directory, core) for n, core in enumerate(physical_cores()[:workers])
    )
    return [Placement(slots=slots, limit_seconds=limit_seconds)] * workers


def on_gpus(workers: int, gpus: Sequence[MeasuredGpu], limit_seconds: float) -> list[Placement]:
    """Returns a place for every worker, at least one for each device: devices measure side by side.
    One device has one slot, because CUDA event times include the slices of others. A worker may
    wait for its device for as long as the claim allows; that is not the candidate's fault."""
    homes = _homes(workers, gpus)
    return [_on_gpu(home, (Slot(claim=home.claim),), limit_seconds) for home in homes]


def on_held_gpus(
    workers: int, gpus: Sequence[MeasuredGpu], directory: Path, limit_seconds: float
) -> list[Placement]:
    """Returns the same if the devices are held for the whole run and tell kernel times themselves:
    each worker of a device has a slot."""
    homes = _homes(workers, gpus)
    slots = {
        uuid: tuple(_own_slot(f"{uuid}-{n}", directory) for n in range(count))
        for uuid, count in Counter(home.gpu.uuid for home in homes).items()
    }
    places = (_on_gpu(home, slots[home.gpu.uuid], limit_seconds) for home in homes)
    return [msgspec.structs.replace(place, has_kernel_clock=True) for place in places]


def _own_slot(name: str, directory: Path, cores: tuple[int, ...] = ()) -> Slot:
    """Returns the slot of one run's workers, in the run's directory."""
    claim = Claim(
        uuid=f"timing-{name}",
        directory=str(directory),
        wait_seconds=_FOR_ANOTHER_WORKER_SECONDS,
    )
    return Slot(claim=claim, cores=cores)


def _homes(workers: int, gpus: Sequence[MeasuredGpu]) -> list[MeasuredGpu]:
    """Returns the device of each worker."""
    return list(islice(cycle(gpus), max(workers, len(gpus))))


def _on_gpu(gpu: MeasuredGpu, slots: tuple[Slot, ...], limit_seconds: float) -> Placement:
    return Placement(
        slots=slots,
        variables=gpu.variables,
        measuring_seconds=limit_seconds,
        limit_seconds=2 * limit_seconds + gpu.claim.wait_seconds,
    )


# A worker's turn on its device: alone, or in a slot beside others.


@contextmanager
def in_slot(request: Measure) -> Iterator[None]:
    """Holds the slot of a request. Raises EnvironmentUnfitError if the turn does not come in
    time."""
    slots = request.place.slots if request.place is not None else ()
    if len(slots) < 2:  # noqa: PLR2004
        with held_device(slots[0].claim) if slots else ExitStack():
            yield
        return
    with ExitStack() as stack:
        # A request for the whole device closes the door to new ones, and waits for the present ones
        # to leave.
        with held_device(_door(slots[0].claim)):
            if _is_exclusive(request):
                claims = [stack.enter_context(held_device(slot.claim)) for slot in slots]
            else:
                open_to_us = (slot.claim for slot in slots[: request.at_once])
                claims = [stack.enter_context(held_device(*open_to_us))]
        if not _is_exclusive(request):
            stack.enter_context(_pin_to_cores(next(s for s in slots if s.claim == claims[0])))
        yield


def _is_exclusive(request: Measure) -> bool:
    """Returns whether nothing is timed beside the candidate: it is not checked later."""
    return request.alone or request.at_once == 1


def _door(claim: Claim) -> Claim:
    return msgspec.structs.replace(claim, uuid=f"{claim.uuid}-door")


@contextmanager
def _pin_to_cores(slot: Slot) -> Iterator[None]:
    """Pins the process to the slot's cores. Candidates beside each other must not share a core; one
    that is alone runs wherever the kernel puts it."""
    before = os.sched_getaffinity(0)
    os.sched_setaffinity(0, slot.cores or before)
    try:
        yield
    finally:
        os.sched_setaffinity(0, before)
