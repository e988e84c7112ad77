"""What tuning did."""

from __future__ import annotations

from typing import Literal

import msgspec

from tunegate.artifacts.plans import Cost
from tunegate_cache.records import DeviceFingerprint, TuningRecord, WorkloadKey


class TaskOutcome(msgspec.Struct, frozen=True, kw_only=True):
    """What tuning did to one task.

    `before_ms` is the best time known before (the default schedule where nothing was), `best_ms`
    the best now; both per call, None if never measured. `failures` counts candidates by cause.
    """

    key: WorkloadKey
    target: str
    name: str
    source: Literal["exact", "transfer", "search", "default"]
    records: tuple[TuningRecord, ...]
    trials: int
    before_ms: float | None
    best_ms: float | None
    seconds: float
    stopped: Literal[
        "exact", "finished", "converged", "budget", "failed", "cancelled", "not-started"
    ]
    failures: dict[str, int] = {}
    detail: str = ""


class TuningOutcome(msgspec.Struct, frozen=True, kw_only=True):
    """`outcome-<shard>.json`. `curve` is (seconds spent, estimated end-to-end ms) over time."""

    schema: Literal[1] = 1
    shard: int
    target: str
    tasks: tuple[TaskOutcome, ...]
    spent: Cost
    device: DeviceFingerprint
    stopped: Literal["finished", "seconds", "usd", "trials", "cancelled", "failed"]
    curve: tuple[tuple[float, float], ...] = ()
    notes: tuple[str, ...] = ()
