"""TaskSet -> MeasuringShards: which runner builds and measures which models."""

from __future__ import annotations

from collections.abc import Sequence

from tunegate.artifacts.changes import ModelChange
from tunegate.artifacts.plans import MeasuringShard, TuningPlan
from tunegate.artifacts.tasks import TaskSet
from tunegate.config import Config, TargetConfig
from tunegate.errors import ConfigError
from tunegate.measuring.expected_seconds import expected_seconds
from tunegate.sides.export_models import is_measured
from tunegate.stages.plan import MAX_SHARDS
from tunegate.stages.plan_matrix import MatrixLeg
from tunegate.tuning.allocation import divide
from tunegate.tuning.sharding import balanced


def plan_measuring(
    tasks: TaskSet, config: Config, *, shards: int | None = None
) -> tuple[MeasuringShard, ...]:
    """Returns shards that take about as long, none of them empty. Without `shards` there is one for
    each target that has models; more are shared out by what the targets are expected to take.
    Raises ConfigError."""
    if shards is not None and not 1 <= shards <= MAX_SHARDS:
        message = f"--measure-shards: {shards} is not a number of shards. Use 1 to {MAX_SHARDS}."
        raise ConfigError(message)
    parts = [(target, _models(tasks, target)) for target in config.targets]
    parts = [(target, models) for target, models in parts if models]
    loads = [_loads(tasks, target, models, config) for target, models in parts]
    planned: list[MeasuringShard] = []
    for part, mine, count in zip(parts, loads, _counts(loads, shards), strict=True):
        planned += _shards(part, mine, count, first_index=len(planned))
    return tuple(planned)


def measure_matrix(plan: TuningPlan) -> dict[str, list[MatrixLeg]]:
    """The CI matrix of the runners that measure; empty where nothing is built."""
    return {
        "include": [
            {
                "shard": shard.index,
                "target": shard.target,
                "runner": list(shard.labels),
                "name": f"measure-{shard.index}-{shard.target}",
            }
            for shard in plan.measuring
        ]
    }


def _models(tasks: TaskSet, target: TargetConfig) -> list[ModelChange]:
    return [
        change
        for change in tasks.changes.models
        if target.name in change.targets and is_measured(change)
    ]


def _loads(
    tasks: TaskSet, target: TargetConfig, models: Sequence[ModelChange], config: Config
) -> list[float]:
    mine = [task for task in tasks.tasks if task.target == target.name]
    return [expected_seconds(change, mine, target.kind, config.gate) for change in models]


def _counts(loads: Sequence[Sequence[float]], shards: int | None) -> list[int]:
    """Returns the number of shards of each target: one at least, and no more than it has models."""
    least = [1] * len(loads)
    if shards is None or shards <= len(loads):
        return least
    counts = divide([sum(mine) for mine in loads], shards, at_least=least)
    return [min(count, len(mine)) for count, mine in zip(counts, loads, strict=True)]


def _shards(
    part: tuple[TargetConfig, Sequence[ModelChange]],
    loads: Sequence[float],
    count: int,
    *,
    first_index: int,
) -> list[MeasuringShard]:
    target, models = part
    return [
        MeasuringShard(
            index=first_index + number,
            target=target.name,
            labels=target.runner,
            models=tuple(models[i].path for i in group),
            predicted_seconds=sum(loads[i] for i in group),
        )
        for number, group in enumerate(balanced(loads, count))
    ]
