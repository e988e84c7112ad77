"""Tasks that the next run has an answer for."""

from __future__ import annotations

from tunegate.artifacts.outcomes import TaskOutcome
from tunegate.tuning.unfinished import is_unfinished
from tunegate_cache.format.records import ExactHit


def answers_next_run(outcome: TaskOutcome) -> bool:
    """Returns whether the measurements are an answer: brought to the end, and confirmed."""
    own = tuple(record for record in outcome.records if record.key == outcome.key)
    return bool(own) and not is_unfinished(ExactHit(own))
