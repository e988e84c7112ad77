"""The results of tuning."""

from typing import Literal

import msgspec

from tunegate.artifacts.plans import Cost
from tunegate.artifacts.tasks import ScheduleSource
from tunegate_cache.format.records import DeviceFingerprint, RecordStatus, TuningRecord, WorkloadKey

Stopped = Literal[
    "exact",
    "finished",
    "converged",
    "target-latency",
    "budget",
    "failed",
    "cancelled",
    "not-started",
    "shared",
    "behind",
]
"""The reason why tuning of a task ended. A "shared" task was not tuned because both sides of its
models have it, "behind" because its models stay far behind another runtime."""


Older = Literal["", "kept", "lost", "still-lost", "not-asked"]
"""The result for the schedules of an older toolchain: `kept` won again, `lost` to the default
schedule, `still-lost` where the default was faster before, '' without any."""


class CandidateCost(msgspec.Struct, frozen=True, kw_only=True):
    """One candidate at one stage, and its cost. `stage` is `quick` for the first measurement,
    `confirm` for a finalist's second. `pick` is why it was tried; `audit` means that the filter had
    rejected it. The seconds are a worker's. `milliseconds` is the measured time, None if the
    candidate failed. `improved`: the task's best time fell."""

    stage: Literal["quick", "confirm"]
    origin: ScheduleSource
    pick: Literal["given", "random", "predicted", "audit"]
    status: RecordStatus
    build_seconds: float
    run_seconds: float
    milliseconds: float | None
    improved: bool


class TaskOutcome(msgspec.Struct, frozen=True, kw_only=True):
    """The result of tuning one task. `before_ms` is the best time known before (the default
    schedule's if nothing was), `best_ms` the best now; both per call, None if never measured.
    `failures` counts candidates by cause. `misfit` counts transferred schedules that do not apply.
    `search_seconds` went into finding candidates. `costs` has each candidate's cost."""

    key: WorkloadKey
    target: str
    name: str
    source: ScheduleSource
    records: tuple[TuningRecord, ...]
    trials: int
    before_ms: float | None
    best_ms: float | None
    seconds: float
    stopped: Stopped
    failures: dict[str, int] = {}
    detail: str = ""
    search_seconds: float = 0.0
    costs: tuple[CandidateCost, ...] = ()
    older: Older = ""


class TuningOutcome(msgspec.Struct, frozen=True, kw_only=True):
    """The content of `outcome-<shard>.json`. `plan` is the digest of the shard's plan. `curve` is
    (seconds spent, estimated end-to-end ms). `unpublished` counts records that the cache did not
    take in time."""

    schema: Literal[2] = 2
    shard: int
    target: str
    tasks: tuple[TaskOutcome, ...]
    spent: Cost
    device: DeviceFingerprint
    stopped: Literal[
        "finished",
        "converged",
        "target-latency",
        "seconds",
        "usd",
        "trials",
        "cancelled",
        "failed",
    ]
    curve: tuple[tuple[float, float], ...] = ()
    plan: str = ""
    notes: tuple[str, ...] = ()
    unpublished: int = 0
