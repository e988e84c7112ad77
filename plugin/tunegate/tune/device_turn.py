"""A worker's turn on its device: alone, or in a slot beside others."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

import msgspec

from tunegate.system.machine.device_lock import Claim, held_device
from tunegate.tune.protocol import Measure, Slot


@contextmanager
def in_slot(request: Measure) -> Iterator[None]:
    """Raises EnvironmentUnfitError when the turn does not come in time."""
    slots = request.place.slots if request.place is not None else ()
    if len(slots) < 2:  # noqa: PLR2004
        with held_device(slots[0].claim) if slots else ExitStack():
            yield
        return
    with ExitStack() as stack:
        # Who wants the device alone closes the door behind the others,
        # and waits until they are gone.
        with held_device(_door(slots[0].claim)):
            if _is_exclusive(request):
                taken = [stack.enter_context(held_device(slot.claim)) for slot in slots]
            else:
                open_to_us = (slot.claim for slot in slots[: request.at_once])
                taken = [stack.enter_context(held_device(*open_to_us))]
        if not _is_exclusive(request):
            stack.enter_context(_pinned(next(s for s in slots if s.claim == taken[0])))
        yield


def _is_exclusive(request: Measure) -> bool:
    """Returns whether the candidate is timed with nothing beside it: it is not checked later."""
    return request.alone or request.at_once == 1


def _door(claim: Claim) -> Claim:
    return msgspec.structs.replace(claim, uuid=f"{claim.uuid}-door")


@contextmanager
def _pinned(slot: Slot) -> Iterator[None]:
    """Candidates beside each other must not share a core. One that has the device to itself runs
    wherever the kernel finds most room."""
    before = os.sched_getaffinity(0)
    os.sched_setaffinity(0, slot.cores or before)
    try:
        yield
    finally:
        os.sched_setaffinity(0, before)
