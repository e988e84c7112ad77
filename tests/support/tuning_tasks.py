"""Builders of tuning tasks, records and resolutions, each with a sensible default."""

import hashlib
from collections.abc import Sequence

from tunegate.artifacts.changes import ChangeSet, Revisions, Side
from tunegate.artifacts.outcomes import TaskOutcome, TuningOutcome
from tunegate.artifacts.plans import Budget, Cost, PlannedTask, Shard, TuningPlan
from tunegate.artifacts.tasks import (
    CacheUse,
    Claims,
    Resolution,
    ResolvedTask,
    TaskSet,
    TaskUse,
    TuningTask,
)
from tunegate_cache.format import records

DEVICE = records.DeviceFingerprint(name="a machine", kind="cpu", units=2, memory_bytes=8 << 30)
CHANGES = ChangeSet(revisions=Revisions(base="b" * 40, head="a" * 40), models=())
SHAPE = records.WorkloadShape("5" * 64, (1, 64, 56, 56))


def key_of(name: str, target: str = "cpu") -> records.WorkloadKey:
    digests = (hashlib.sha256(text.encode()).hexdigest() for text in (name, target))
    return records.WorkloadKey(*digests)


def make_task(
    name: str = "conv2d",
    *,
    target: str = "cpu",
    operator: str = "conv2d_add",
    dtype: str = "float32",
    flops: float = 1e8,
    bytes_moved: float = 0.0,
    weight: int = 1,
    sides: Sequence[Side] = ("head",),
) -> TuningTask:
    uses = tuple(TaskUse(model="m.onnx", side=side, weight=weight, name=name) for side in sides)
    return TuningTask(
        key=key_of(name, target),
        shape=SHAPE,
        target=target,
        operator=operator,
        dtype=dtype,
        flops=flops,
        bytes_moved=bytes_moved,
        uses=uses,
    )


def make_record(
    name: str = "conv2d",
    *,
    milliseconds: float = 1.0,
    target: str = "cpu",
    at: int = 1,
    times: int = records.CONFIRMED_REPEATS,
) -> records.TuningRecord:
    return records.TuningRecord(
        key=key_of(name, target),
        shape=SHAPE,
        template="7" * 64,
        decisions=((3, (4, 4, 4)),),
        run_nanoseconds=(round(milliseconds * 1e6),) * times,
        status="ok",
        device=DEVICE,
        toolchain=records.Toolchain(tvm="0.27.0", ffi="0.1.14"),
        measured_at=at,
    )


def exact(
    name: str = "conv2d", *, milliseconds: float = 1.0, target: str = "cpu"
) -> records.ExactHit:
    return records.ExactHit((make_record(name, milliseconds=milliseconds, target=target),))


def transfer(distance: float = 1.0) -> records.TransferHit:
    return records.TransferHit((key_of("source"),), distance, (make_record("source"),))


def make_planned(
    task: TuningTask, lookup: records.Lookup | None = None, *, trials: int = 8
) -> PlannedTask:
    resolved = ResolvedTask(task, lookup or records.Miss("absent"))
    return PlannedTask(resolved=resolved, trials=trials, gain_ms=1.0)


def make_outcome(name: str = "conv2d", **fields: object) -> TaskOutcome:
    usual: dict[str, object] = {
        "key": key_of(name),
        "target": "cpu",
        "name": name,
        "source": "search",
        "records": (),
        "trials": 8,
        "before_ms": 10.0,
        "best_ms": 1.0,
        "seconds": 4.0,
        "stopped": "converged",
    }
    return TaskOutcome(**(usual | fields))  # type: ignore[arg-type]  # a builder


def make_shard(*tasks: PlannedTask, **fields: object) -> Shard:
    usual: dict[str, object] = {
        "index": 0,
        "target": "cpu",
        "labels": (),
        "budget": Budget(seconds=60.0, trials=None),
        "predicted_seconds": 1.0,
    }
    return Shard(tasks=tasks, **(usual | fields))  # type: ignore[arg-type]  # a builder


def make_tuning(*tasks: TaskOutcome, **fields: object) -> TuningOutcome:
    """Returns the outcome of a shard with these tasks."""
    usual: dict[str, object] = {
        "shard": 0,
        "target": "cpu",
        "spent": Cost(seconds=1.0),
        "device": DEVICE,
        "stopped": "finished",
    }
    return TuningOutcome(tasks=tasks, **(usual | fields))  # type: ignore[arg-type]  # a builder


def make_plan(resolution: Resolution, **fields: object) -> TuningPlan:
    """Returns a plan without shards."""
    usual: dict[str, object] = {
        "changes": CHANGES,
        "shards": (),
        "budget": Budget(seconds=None, trials=None),
        "estimate": Cost(seconds=0.0),
    }
    return TuningPlan(resolution=resolution, **(usual | fields))  # type: ignore[arg-type]


def make_task_set(tasks: Sequence[TuningTask]) -> TaskSet:
    return TaskSet(changes=CHANGES, tasks=tuple(tasks))


def make_resolution(
    tasks: Sequence[TuningTask],
    lookups: Sequence[records.Lookup] | None = None,
    claims: Claims | None = None,
) -> Resolution:
    found = lookups or [records.Miss("absent")] * len(tasks)
    resolved = tuple(
        ResolvedTask(task, hit, claims) for task, hit in zip(tasks, found, strict=True)
    )
    return Resolution(tasks=resolved, cache=CacheUse(location="memory", zone="main", mode="rw"))
