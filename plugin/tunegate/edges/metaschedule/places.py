"""Where the workers of a tuning run measure: each on a device of its own, or in turn on one."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import cycle, islice
from pathlib import Path
from typing import NamedTuple

from tunegate.edges.device_lock import Claim
from tunegate.edges.nvidia.session import MeasuredGpu


class Place(NamedTuple):
    """`claim` is held while timing; `variables` are of the worker's process. `measuring_seconds` is how
    long building, and measuring once the device is ours, may each take; `limit_seconds` all of it."""

    claim: Claim
    variables: dict[str, str]
    measuring_seconds: float | None
    limit_seconds: float


def on_cpu(workers: int, directory: Path, limit_seconds: float) -> list[Place]:
    """One times while the others build."""
    claim = Claim(uuid="timing", directory=str(directory), wait_seconds=limit_seconds)
    return [Place(claim, {}, None, limit_seconds)] * workers


def on_gpus(workers: int, gpus: Sequence[MeasuredGpu], limit_seconds: float) -> list[Place]:
    """At least one for each device: those measure side by side. A worker waits for its device as long as
    the claim says, and that is not the candidate's fault."""
    return [
        Place(
            gpu.claim,
            gpu.variables,
            limit_seconds,
            2 * limit_seconds + gpu.claim.wait_seconds,
        )
        for gpu in islice(cycle(gpus), max(workers, len(gpus)))
    ]
