"""Revalidates records of others on every target, within the budget."""

from __future__ import annotations

from collections.abc import Sequence

from tunegate.artifacts.outcomes import TaskOutcome
from tunegate.plurals import plural
from tunegate.ports import Progress, Tuner
from tunegate.revalidation.challenges import Challenge, Revalidated, results_of, revalidation_shard
from tunegate.sides.export_models import ModelFiles
from tunegate_cache.format.records import TuningRecord, WorkloadKey

_SECONDS_PER_MINUTE = 60


def revalidate(
    challenges: Sequence[Challenge],
    models: ModelFiles,
    tuner: Tuner,
    minutes: float | None,
    progress: Progress,
) -> tuple[tuple[Revalidated, TuningRecord | None], ...]:
    """The result of every challenge, and the record to publish if it won."""
    seconds = None if minutes is None else minutes * _SECONDS_PER_MINUTE
    outcomes: dict[WorkloadKey, TaskOutcome] = {}
    for target in dict.fromkeys(challenge.task.target for challenge in challenges):
        shard = revalidation_shard(target, challenges, seconds)
        progress.step(f"measure: {plural(len(shard.tasks), 'task')} on {target}")
        outcomes.update({o.key: o for o in tuner.recheck(shard, models)})
    return results_of(challenges, outcomes)
