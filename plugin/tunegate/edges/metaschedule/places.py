"""Where the workers of a tuning run measure: each on a device of its own, or by turns on one."""

from __future__ import annotations

import os
from collections.abc import Sequence
from itertools import cycle, islice
from pathlib import Path

import msgspec

from tunegate.edges.device_lock import Claim
from tunegate.edges.nvidia.session import MeasuredGpu


class Slot(msgspec.Struct, frozen=True, kw_only=True):
    """What is held while timing. Where several are used at once, each has cores of its own."""

    claim: Claim
    cores: tuple[int, ...] = ()


class Place(msgspec.Struct, frozen=True, kw_only=True):
    """Of one worker: the slots of its device, and variables for its process. `measuring_seconds` is how
    long building, and measuring once the device is ours, may each take; `limit_seconds` all of it. With
    `has_kernel_clock` the device says itself how long kernels took."""

    slots: tuple[Slot, ...]
    variables: dict[str, str] = {}
    measuring_seconds: float | None = None
    limit_seconds: float
    has_kernel_clock: bool = False

    @property
    def device(self) -> Claim:
        """What tells it from another device."""
        return self.slots[0].claim


_FOR_ANOTHER_WORKER_SECONDS = 600.0
"""The worker's own limit is shorter: who hangs is killed, and then it is another one's turn."""


def on_cpu(workers: int, directory: Path, limit_seconds: float) -> list[Place]:
    """Candidates run on one core each while tuning, so there is a slot for every core."""
    slots = tuple(
        Slot(
            claim=Claim(
                uuid=f"timing-{n}",
                directory=str(directory),
                wait_seconds=_FOR_ANOTHER_WORKER_SECONDS,
            ),
            cores=(core,),
        )
        for n, core in enumerate(sorted(os.sched_getaffinity(0))[:workers])
    )
    return [Place(slots=slots, limit_seconds=limit_seconds)] * workers


def on_gpus(workers: int, gpus: Sequence[MeasuredGpu], limit_seconds: float) -> list[Place]:
    """At least one for each device: those measure side by side. On one device there is one slot: times
    that CUDA's events tell hold the slices of others. A worker waits for its device as long as the claim
    says, and that is not the candidate's fault."""
    return [
        Place(
            slots=(Slot(claim=gpu.claim),),
            variables=gpu.variables,
            measuring_seconds=limit_seconds,
            limit_seconds=2 * limit_seconds + gpu.claim.wait_seconds,
        )
        for gpu in islice(cycle(gpus), max(workers, len(gpus)))
    ]


def on_held_gpus(
    workers: int, gpus: Sequence[MeasuredGpu], directory: Path, limit_seconds: float
) -> list[Place]:
    """The same where the devices are held for the whole run and tell the times of kernels themselves: a
    slot for each worker of a device, among themselves."""
    claims: dict[str, list[Claim]] = {gpu.gpu.uuid: [] for gpu in gpus}
    homes = list(islice(cycle(gpus), max(workers, len(gpus))))
    for home in homes:
        uuid = home.gpu.uuid
        name = f"timing-{uuid}-{len(claims[uuid])}"
        wait = _FOR_ANOTHER_WORKER_SECONDS
        claims[uuid].append(Claim(uuid=name, directory=str(directory), wait_seconds=wait))
    return [
        Place(
            slots=tuple(Slot(claim=claim) for claim in claims[home.gpu.uuid]),
            variables=home.variables,
            measuring_seconds=limit_seconds,
            limit_seconds=2 * limit_seconds + home.claim.wait_seconds,
            has_kernel_clock=True,
        )
        for home in homes
    ]
