"""The matrix of a CI: a leg for each shard of a plan with something to tune."""

from __future__ import annotations

from tunegate.artifacts.plans import Budget, PlannedTask, TuningPlan
from tunegate.tuning.budget import pays_nothing

MatrixLeg = dict[str, int | str | list[str]]


def matrix(plan: TuningPlan) -> dict[str, list[MatrixLeg]]:
    """The CI matrix: a leg for each shard with something to tune. CI refuses an empty matrix: skip
    the job when `include` is empty."""
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
    return bool(task.trials) or (not pays_nothing(budget) and task.resolved.claims is not None)
