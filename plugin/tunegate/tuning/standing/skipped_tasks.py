"""Which tasks a run does not tune, whatever the cache has of them, and why."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence

from tunegate.artifacts.tasks import Skipped, TuningTask
from tunegate.tuning.payers import paying_sides
from tunegate.tuning.standing.model_keys import ModelOnTarget
from tunegate_cache.format.records import WorkloadKey

IsFarBehind = Callable[[Sequence[TuningTask]], Collection[ModelOnTarget]]
"""The models of these tasks that stay far behind another runtime."""


def nobody(_: Sequence[TuningTask]) -> Collection[ModelOnTarget]:
    """No model is known to be."""
    return ()


def skipped_tasks(
    tasks: Sequence[TuningTask], behind: Collection[ModelOnTarget]
) -> dict[tuple[WorkloadKey, str], Skipped]:
    """The reason for each task, '' for those that the run tunes."""
    return {(task.key, task.target): _skipped(task, behind) for task in tasks}


def _skipped(task: TuningTask, behind: Collection[ModelOnTarget]) -> Skipped:
    """The reason. A shared task of models that are all far behind waits for nothing."""
    paying = {model for model, _ in paying_sides(task)}
    concerned = paying or {use.model for use in task.uses}
    if all((model, task.target) in behind for model in concerned):
        return "behind"
    return "" if paying else "shared"
