"""Tasks that a run does not tune, whatever the cache has of them, and the reasons."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence

from tunegate.artifacts.outcomes import TaskOutcome
from tunegate.artifacts.tasks import Skipped, TuningTask
from tunegate.tune.claims import is_unfinished
from tunegate.tune.model_keys import ModelOnTarget
from tunegate.tune.payers import paying_sides
from tunegate_cache.format.records import ExactHit, WorkloadKey

IsFarBehind = Callable[[Sequence[TuningTask]], Collection[ModelOnTarget]]
"""The models of these tasks that stay far behind another runtime."""


def nobody(_: Sequence[TuningTask]) -> Collection[ModelOnTarget]:
    """No model is known to be."""
    return ()


def skipped_tasks(
    tasks: Sequence[TuningTask], behind: Collection[ModelOnTarget]
) -> dict[tuple[WorkloadKey, str], Skipped]:
    """The reason for each task, '' for those that the run tunes."""
    at_head = {(u.model, task.target) for task in tasks for u in task.uses if u.side == "head"}
    return {(task.key, task.target): _skipped(task, behind, at_head) for task in tasks}


def _skipped(
    task: TuningTask, behind: Collection[ModelOnTarget], at_head: Collection[ModelOnTarget]
) -> Skipped:
    """The reason. A base pays for nothing where its head is not compiled: it is built from what is
    known. A shared task of models that are all far behind waits for nothing."""
    sides = paying_sides(task)
    paying = {model for model, _ in sides if (model, task.target) in at_head}
    concerned = paying or {use.model for use in task.uses}
    if all((model, task.target) in behind for model in concerned):
        return "behind"
    return "" if paying else "shared"


# Tasks that the next run has an answer for.


def answers_next_run(outcome: TaskOutcome) -> bool:
    """Returns whether the measurements are an answer: brought to the end, and confirmed."""
    own = tuple(record for record in outcome.records if record.key == outcome.key)
    return bool(own) and not is_unfinished(ExactHit(own))
