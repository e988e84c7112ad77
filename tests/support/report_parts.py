"""Small builders of what a report is made of: every one has a sensible default."""

import math

from tests.support.models.squeezenet import TASKS, TaskRow
from tunegate.artifacts import measurements
from tunegate.artifacts.builds import Build, BuiltTask, Cell, CellBuilds, NumericCheck
from tunegate.artifacts.changes import ChangeSet, ModelChange, ModelVersion, PolicyChange, Revisions
from tunegate.artifacts.plans import Budget, Cost, PlannedTask, Shard, TuningPlan
from tunegate.artifacts.tasks import CacheUse, Resolution, ResolvedTask, TaskUse, TuningTask
from tunegate.artifacts.verdicts import Finding, Status, TuningSummary, Verdict, VerdictOrigin
from tunegate_cache.format.records import DeviceFingerprint, ExactHit, Miss, WorkloadShape

MODEL = "models/squeezenet.onnx"
REVISIONS = Revisions(
    base="4f2a1c9d8e7b6a5f4e3d2c1b0a9f8e7d6c5b4a39",
    head="b81d3e5f7a9c1b3d5f7e9a1c3b5d7f9e1a3c5b7d",
    reason="pull request #42: merge base with main",
)
DEVICE = DeviceFingerprint(name="AMD EPYC 7B13", kind="cpu", units=2, memory_bytes=8 << 30)


def cell(model: str = MODEL, target: str = "cpu") -> Cell:
    return Cell(model=model, target=target)


def version(path: str, revision: str, digest: str = "a" * 64) -> ModelVersion:
    return ModelVersion(
        revision=revision,
        path=path,
        content_digest=digest,
        graph_digest=digest,
        storage="git",
        size_bytes=4_956_208,
    )


def change(path: str = MODEL, **fields: object) -> ModelChange:
    base = version(path, str(REVISIONS.base))
    head = version(path, REVISIONS.head, "b" * 64)
    wanted = {
        "kind": "modified",
        "change": "structural",
        "base": base,
        "head": head,
        "targets": ("cpu",),
        "reason": "the graph differs",
    }
    return ModelChange(path=path, **(wanted | fields))  # type: ignore[arg-type]  # a builder


def changes(*models: ModelChange, **fields: object) -> ChangeSet:
    wanted = {"revisions": REVISIONS, "models": models, "unchanged": ("models/bert.onnx",)}
    return ChangeSet(**(wanted | fields))  # type: ignore[arg-type]  # a builder


def policy_change(**fields: object) -> PolicyChange:
    wanted = {
        "key": "gate.margin-percent",
        "old": "3",
        "new": "60",
        "effect": "loosened",
        "counts": "once merged",
    }
    return PolicyChange(**(wanted | fields))  # type: ignore[arg-type]  # a builder


def finding(status: Status, reason: str, **fields: object) -> Finding:
    wanted = {
        "model": MODEL,
        "target": "cpu",
        "base_ms": None,
        "head_ms": None,
        "reference_ms": None,
        "change_percent": None,
        "launches": 0,
    }
    return Finding(status=status, reason=reason, **(wanted | fields))  # type: ignore[arg-type]


def summary(**fields: object) -> TuningSummary:
    wanted = {
        "tasks": 10,
        "exact": 10,
        "transfer": 0,
        "miss": 0,
        "trials": 0,
        "seconds": 0.0,
        "usd": None,
        "stopped": "finished",
    }
    return TuningSummary(**(wanted | fields))  # type: ignore[arg-type]


def verdict(
    status: Status,
    exit_code: int,
    *findings: Finding,
    tuning: TuningSummary | None = None,
    policy_changes: tuple[PolicyChange, ...] = (),
    policy_fails: bool = False,
) -> Verdict:
    return Verdict(
        status=status,
        exit_code=exit_code,
        findings=findings,
        tuning=tuning or summary(),
        margin_percent=3.0,
        revisions=REVISIONS,
        policy_changes=policy_changes,
        policy_fails=policy_fails,
        origin=VerdictOrigin(rules="r" * 64),
    )


def effects(center: float, spread: float, count: int) -> tuple[float, ...]:
    """Launch effects in percent, spread evenly on both sides of a centre and then mixed."""
    steps = [(2 * index / (count - 1) - 1) * spread for index in range(count)]
    mixed = [steps[index * 5 % count] for index in range(count)]
    return tuple(round(center + step, 3) for step in mixed)


def comparison(
    interval: measurements.Interval,
    base_ms: float,
    *,
    launches: int = 6,
    spread: float = 1.1,
    **fields: object,
) -> measurements.Comparison:
    wanted = {
        "cell": cell(),
        "base_ms": base_ms,
        "head_ms": round(base_ms * (1 + interval.center / 100), 4),
        "reference_ms": round(base_ms * 1.31, 4),
        "change_percent": interval,
        "decision": "pass",
        "launches": launches,
        "effects_percent": effects(interval.center, spread, launches),
        "projected_launches": None,
        "stopped": "decided",
    }
    return measurements.Comparison(**(wanted | fields))  # type: ignore[arg-type]  # a builder


def measurement(
    compared: measurements.Comparison, **fields: object
) -> measurements.CellMeasurement:
    base_ms = compared.base_ms or 0.0
    launches = tuple(
        measurements.Launch(
            effect=math.log1p(effect / 100),
            base_ms=round(base_ms * (1 + (index % 3 - 1) / 150), 4),
            head_ms=round(base_ms * (1 + (index % 3 - 1) / 150) * (1 + effect / 100), 4),
            pairs=12,
            seconds=7.5,
        )
        for index, effect in enumerate(compared.effects_percent)
    )
    wanted = {
        "cell": compared.cell,
        "launches": launches,
        "analyses": (4, 6),
        "stopped": compared.stopped,
        "seconds": 7.5 * len(launches) + 2,
        "head_ms": compared.head_ms,
        "reference_ms": compared.reference_ms,
    }
    return measurements.CellMeasurement(**(wanted | fields))  # type: ignore[arg-type]  # a builder


def built(
    key: str, tasks: tuple[TaskRow, ...] = TASKS, *, error: str | None = None, seconds: float = 6.2
) -> Build:
    worst = 0.41 if error else 1.9e-6
    return Build(
        runtime="tvm",
        title="TVM",
        key=key * 64,
        directory=f"builds/{key}",
        tasks=tuple(
            BuiltTask(
                key=row.key, name=row.name, weight=row.weight, source=row.source, rid="", ms=row.ms
            )
            for row in tasks
        ),
        check=NumericCheck(
            passed=error is None, max_absolute=worst * 2, max_relative=worst, tolerance=1e-3
        ),
        error=error,
        size_bytes=5_120_000,
        seconds=seconds,
    )


def measured(
    *cells: measurements.CellMeasurement, base: Build | None = None, head: Build | None = None
) -> measurements.MeasurementRun:
    builds = tuple(
        CellBuilds(cell=each.cell, base=base or built("c"), head=head or built("d"))
        for each in cells
    )
    environment = {"cpu governor": "performance", "load average": "0.41", "tvm": "0.27.0.post1"}
    return measurements.MeasurementRun(
        device=DEVICE, builds=builds, cells=cells, environment=environment
    )


def differences(head: tuple[TaskRow, ...]) -> tuple[measurements.TaskDifference, ...]:
    """The tasks of squeezenet on the base side against another table on the head side."""
    before = {row.name: row for row in TASKS}
    after = {row.name: row for row in head}
    names = [*after, *(name for name in before if name not in after)]
    return tuple(
        measurements.TaskDifference(
            name=name,
            base_ms=round(before[name].total_ms, 4) if name in before else None,
            head_ms=round(after[name].total_ms, 4) if name in after else None,
            source=(after.get(name) or before[name]).source,
        )
        for name in names
    )


def cache(**fields: object) -> CacheUse:
    wanted = {
        "location": "s3://acme-ml-cache/tunegate",
        "zone": "pr-42",
        "mode": "rw",
        "exact": 10,
        "requests": 4,
        "bytes_read": 48_200,
        "seconds": 0.31,
        "usd": 1.2e-5,
    }
    return CacheUse(**(wanted | fields))  # type: ignore[arg-type]  # a builder


def plan(
    change_set: ChangeSet,
    use: CacheUse,
    tasks: tuple[TaskRow, ...] = TASKS,
    budget: Budget | None = None,
) -> TuningPlan:
    wanted = budget or Budget(seconds=600.0, trials=None, usd=0.6, usd_per_hour=3.6)
    resolved = tuple(ResolvedTask(_task(row), _lookup(row)) for row in tasks)
    planned = tuple(
        PlannedTask(resolved=each, trials=row.trials, gain_ms=row.gain_ms)
        for each, row in zip(resolved, tasks, strict=True)
    )
    shard = Shard(
        index=0,
        target="cpu",
        labels=("self-hosted",),
        tasks=planned,
        budget=wanted,
        predicted_seconds=118.0,
    )
    return TuningPlan(
        changes=change_set,
        resolution=Resolution(tasks=resolved, cache=use),
        shards=(shard,),
        budget=wanted,
        estimate=Cost(seconds=118.0, usd=0.118),
        saved=Cost(seconds=262.0, usd=0.262),
    )


def _task(row: TaskRow) -> TuningTask:
    use = TaskUse(model=MODEL, side="head", weight=row.weight, name=row.name)
    return TuningTask(
        key=row.key,
        shape=WorkloadShape("5" * 64, (64, 55, 55)),
        target="cpu",
        operator="conv2d",
        dtype="float32",
        flops=2.1e7,
        uses=(use,),
    )


def _lookup(row: TaskRow) -> ExactHit | Miss:
    return ExactHit(()) if row.source == "exact" else Miss("absent")
