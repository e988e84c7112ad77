"""The check whether more tuning can bring a model's compiled build near the runtime that ships.

A ratio alone says little: a model that was 20 times slower than ONNX Runtime untuned was faster
than it after ten minutes. So only what has been searched counts as what the model will keep.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping

from tunegate.artifacts.changes import ModelPath
from tunegate.artifacts.outcomes import TaskOutcome
from tunegate.artifacts.tasks import ResolvedTask
from tunegate.tuning import headroom
from tunegate.tuning.expected_time import TargetKind, known_ms
from tunegate_cache.format.records import WorkloadKey

FAR = 2.0
"""The ratio to the runtime that ships beyond which a build cannot catch up."""
MIN_TRIALS = 32
"""The trials after which the curve of an unfinished search predicts what is left."""
MORE = 8
"""The factor of further trials that an unfinished task is given, to see what they would save."""


def is_far_behind(compiled_ms: float, other_ms: float, kept: float) -> bool:
    """`kept` is the share of its time that the compiled build has left whatever is tuned yet."""
    return compiled_ms * kept > FAR * other_ms


def kept_share(
    model: ModelPath,
    tasks: Iterable[ResolvedTask],
    outcomes: Mapping[WorkloadKey, TaskOutcome],
    known: Collection[WorkloadKey],
    kind: TargetKind,
) -> float:
    """The share of the head's time that stays however much is still tuned, 0 to 1.

    A finished task (`known`) stays as it is: no run tunes it again. One that had few trials may
    come to nothing.
    """
    whole_ms = kept_ms = 0.0
    for task in tasks:
        weight = sum(u.weight for u in task.task.uses if (u.model, u.side) == (model, "head"))
        outcome = outcomes.get(task.task.key)
        now_ms = (outcome.best_ms if outcome is not None else None) or known_ms(task, kind)
        whole_ms += weight * now_ms
        kept_ms += weight * now_ms * _kept(outcome, is_known=task.task.key in known)
    return kept_ms / whole_ms if whole_ms else 0.0


def _kept(outcome: TaskOutcome | None, *, is_known: bool) -> float:
    if is_known:
        return 1.0
    if outcome is None or outcome.trials < MIN_TRIALS or outcome.best_ms is None:
        return 0.0
    return 1.0 - headroom.of_unfinished(1.0, outcome, more=MORE)
