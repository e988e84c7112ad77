"""The measuring shards of a plan, and the matrix by which a CI starts a job for each shard."""

from collections.abc import Sequence

import msgspec

from tunegate.artifacts.changes import ModelChange
from tunegate.artifacts.plans import Budget, MeasuringShard, PlannedTask, TuningPlan
from tunegate.artifacts.tasks import TaskSet
from tunegate.config import Config, TargetConfig
from tunegate.errors import ConfigError
from tunegate.plan.allocation import balance_loads, divide
from tunegate.plan.plan import MAX_SHARDS
from tunegate.plan.run_forecast import expected_seconds
from tunegate.tune.model_keys import tasks_of_models

# The matrix of a CI: a leg for each shard with something to tune.

MatrixLeg = dict[str, int | str | list[str]]


def matrix(plan: TuningPlan) -> dict[str, list[MatrixLeg]]:
    """Returns the CI matrix: a leg for each shard with something to tune. CI refuses an empty
    matrix, so skip the job if `include` is empty."""
    return {
        "include": [
            {
                "shard": shard.index,
                "target": shard.target,
                "runner": list(shard.labels),
                "name": f"shard-{shard.index}-{shard.target}",
            }
            for shard in plan.shards
            if any(_has_work(task, shard.budget) for task in shard.tasks)
        ]
    }


def _has_work(task: PlannedTask, budget: Budget) -> bool:
    """Returns whether there is something to search, or a claim to measure."""
    return bool(task.trials) or (not budget.pays_nothing and task.resolved.claims is not None)


# TaskSet -> MeasuringShards: which runner builds and measures which models.


def plan_measuring(
    tasks: TaskSet, config: Config, *, shards: int | None = None
) -> tuple[MeasuringShard, ...]:
    """Returns shards of about equal length, none empty. Without `shards` each target that has
    models gets one; more are divided by the time that the targets are expected to take. Raises
    ConfigError."""
    if shards is not None and not 1 <= shards <= MAX_SHARDS:
        message = f"--measure-shards: {shards} is not a number of shards. Use 1 to {MAX_SHARDS}."
        raise ConfigError(message)
    parts = [(target, _models(tasks, target)) for target in config.targets]
    parts = [(target, models) for target, models in parts if models]
    loads = [_loads(tasks, target, models, config) for target, models in parts]
    measuring_shards: list[MeasuringShard] = []
    for part, mine, count in zip(parts, loads, _counts(loads, shards), strict=True):
        measuring_shards += _shards(part, mine, count, first_index=len(measuring_shards))
    return tuple(measuring_shards)


def measure_matrix(plan: TuningPlan) -> dict[str, list[MatrixLeg]]:
    """Returns the CI matrix of the measuring runners, empty if nothing is built."""
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
        if target.name in change.targets and change.is_measured
    ]


def _loads(
    tasks: TaskSet, target: TargetConfig, models: Sequence[ModelChange], config: Config
) -> list[float]:
    of_models = tasks_of_models(tasks.tasks)
    return [
        expected_seconds(
            change, of_models.get((change.path, target.name), ()), target.kind, config.gate
        )
        for change in models
    ]


def _counts(loads: Sequence[Sequence[float]], shards: int | None) -> list[int]:
    """Returns the number of shards of each target: at least one, at most one for each model."""
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
        for number, group in enumerate(balance_loads(loads, count))
    ]


# The part of a plan for one measuring shard. Pure.


def of_shard(plan: TuningPlan, shard: MeasuringShard) -> TuningPlan:
    """Returns the plan with this shard's models on its target."""
    own = set(shard.models)
    models = tuple(
        msgspec.structs.replace(change, targets=(shard.target,))
        for change in plan.changes.models
        if change.path in own
    )
    changes = msgspec.structs.replace(plan.changes, models=models)
    return msgspec.structs.replace(plan, changes=changes)


def compared_elsewhere(plan: TuningPlan, shard: MeasuringShard) -> int:
    """Returns the most cells that the other shards compare. All cells are judged together."""
    with_base = {change.path for change in plan.changes.models if change.base is not None}
    return sum(
        model in with_base
        for other in plan.measuring
        if other.index != shard.index
        for model in other.models
    )
