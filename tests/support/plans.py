"""Builders of configurations and plans of a few tasks."""

from tests.support.tuning_tasks import make_resolution, make_task_set
from tunegate.artifacts.plans import TuningPlan
from tunegate.artifacts.tasks import Claims, TuningTask
from tunegate.config import BudgetConfig, Config, ModelConfig, TargetConfig
from tunegate.plan.plan import plan
from tunegate_cache.format.records import Lookup, Miss

CPU = TargetConfig(name="cpu", runner=("self-hosted", "linux"), usd_per_hour=1.0)
GPU = TargetConfig(name="gpu", kind="cuda", runner=("self-hosted", "gpu"), usd_per_hour=4.0)
MISS = Miss("absent")


def config_of(budget: BudgetConfig | None = None, *targets: TargetConfig) -> Config:
    return Config(
        models=(ModelConfig(path="*.onnx"),),
        targets=targets or (CPU, GPU),
        budget=budget or BudgetConfig(),
    )


def plan_of(
    tasks: list[TuningTask],
    lookups: list[Lookup] | None = None,
    *,
    budget: BudgetConfig | None = None,
    shards: int | None = None,
    claims: Claims | None = None,
) -> TuningPlan:
    resolution = make_resolution(tasks, lookups, claims)
    return plan(make_task_set(tasks), resolution, config_of(budget), shards=shards)
