"""The expected time of a task, and the share that tuning can save, before anything is measured.

Rough on purpose: it only decides who is served first and how the first trials are shared. The
rates are what one small machine was seen to do; only their ratios matter.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Callable, Collection, Sequence
from typing import Literal

import msgspec

from tunegate.artifacts.changes import ModelPath, ModelSide, Side
from tunegate.artifacts.outcomes import TaskOutcome
from tunegate.artifacts.plans import PlannedTask
from tunegate.artifacts.tasks import ResolvedTask, Skipped, TuningTask
from tunegate.tune.claims import is_resumed, is_settled, is_unfinished
from tunegate.tune.improvement import FROM_NOTHING, INFORMED, Pace, TaskState
from tunegate.tune.model_keys import ModelOnTarget
from tunegate_cache.format.records import ExactHit, Miss, TransferHit, WorkloadKey

TargetKind = Literal["llvm", "cuda"]
OperatorClass = Literal["contraction", "reduction", "elementwise"]


class Rates(msgspec.Struct, frozen=True, kw_only=True):
    """Operations per second in float32 with the default schedule, and tuned."""

    untuned: float
    tuned: float


RATES: dict[tuple[TargetKind, OperatorClass], Rates] = {
    ("llvm", "contraction"): Rates(untuned=1.2e9, tuned=3e10),
    ("llvm", "reduction"): Rates(untuned=8e8, tuned=2e9),
    ("llvm", "elementwise"): Rates(untuned=1e9, tuned=1.5e9),
    ("cuda", "contraction"): Rates(untuned=2e11, tuned=6e12),
    ("cuda", "reduction"): Rates(untuned=5e10, tuned=1.5e11),
    ("cuda", "elementwise"): Rates(untuned=1e11, tuned=2e11),
}
BYTES_PER_SECOND: dict[TargetKind, float] = {"llvm": 4e9, "cuda": 4e11}
CALL_MS: dict[TargetKind, float] = {"llvm": 0.002, "cuda": 0.005}
"""The least any call takes; also the time of what the flop count knows nothing of."""
MIN_HEADROOM = 0.05
"""Even what looks like pure data movement may hide a bad loop order."""
TRANSFER_HEADROOM = 0.25
"""The share that a search still saves over a neighbour's schedule (3-15% seen, for matrix
products)."""
TRANSFER_HEADROOM_PER_DISTANCE = 0.05
PACES: dict[TargetKind, Pace] = {"llvm": INFORMED, "cuda": FROM_NOTHING}
"""There is experience from before for CPUs (`cost_model/data`)."""
SECONDS_PER_TRIAL: dict[TargetKind, float] = {"llvm": 0.4, "cuda": 0.8}
"""Search, build and overheads of one candidate, with all workers at work."""
RUNS_PER_TRIAL = 20

_CONTRACTIONS = ("conv", "matmul", "dense", "gemm", "einsum", "attention", "lstm", "gru")
_REDUCTIONS = ("pool", "softmax", "norm", "sum", "mean", "max", "min", "argmax", "cumsum")


def prior_ms(task: TuningTask, kind: TargetKind = "llvm") -> float:
    """The expected time of one call with the default schedule."""
    computing = task.flops / _rates(task, kind).untuned
    return CALL_MS[kind] + max(computing, _moving_seconds(task, kind)) * 1e3


def known_ms(resolved: ResolvedTask, kind: TargetKind) -> float:
    """The time of one call as it stands: measured where there are records of this very task."""
    lookup = resolved.lookup
    if isinstance(lookup, ExactHit) or is_resumed(resolved.task.key, lookup):
        records = () if isinstance(lookup, Miss) else lookup.records
        measured = min((record.shrunk_ms for record in records), default=math.inf)
        if math.isfinite(measured):
            return measured
    return prior_ms(resolved.task, kind)


def assumed_headroom(resolved: ResolvedTask, kind: TargetKind) -> float:
    """The share of its time that a search is expected to save at best: 0 where there is none."""
    if is_settled(resolved):
        return 0.0
    match resolved.lookup:
        case ExactHit():
            return 0.0
        case TransferHit(distance=distance):
            transferred = TRANSFER_HEADROOM + TRANSFER_HEADROOM_PER_DISTANCE * distance
            return min(transferred, _untuned_headroom(resolved.task, kind))
        case Miss():
            return _untuned_headroom(resolved.task, kind)


def seconds_per_trial(task: TuningTask, kind: TargetKind) -> float:
    """Wall clock that one candidate of a task costs, before anything is measured."""
    return seconds_of_a_trial(prior_ms(task, kind), kind)


def seconds_of_a_trial(call_ms: float, kind: TargetKind) -> float:
    """Wall clock that one candidate costs; a slow function also costs the time of its runs."""
    return SECONDS_PER_TRIAL[kind] + min(1.0, RUNS_PER_TRIAL * call_ms / 10 / 1e3)


def weight_of(task: TuningTask) -> int:
    """Calls per inference, over all models; of each model the side that has more."""
    calls: dict[str, dict[Side, int]] = {}
    for use in task.uses:
        sides = calls.setdefault(use.model, {})
        sides[use.side] = sides.get(use.side, 0) + use.weight
    return sum(max(sides.values()) for sides in calls.values())


def calls_on(side: Side, task: TuningTask) -> int:
    """Calls per inference of that side, over all models."""
    return sum(use.weight for use in task.uses if use.side == side)


def starting_state(planned: PlannedTask, kind: TargetKind) -> TaskState:
    """Returns the scheduler's state of a task before its first batch."""
    return TaskState(
        weight=weight_of(planned.resolved.task),
        prior_ms=known_ms(planned.resolved, kind),
        # A transferred schedule has yet to be measured: its first batch is worth the most.
        headroom=0.0
        if is_settled(planned.resolved)
        else _untuned_headroom(planned.resolved.task, kind),
        flops=planned.resolved.task.flops,
        bytes_moved=planned.resolved.task.bytes_moved,
        pace=PACES[kind],
        sides=paying_sides(planned.resolved.task),
    )


def operator_class(operator: str) -> OperatorClass:
    """The class of a fused operator by the names in it: `conv2d_add_relu` is a contraction."""
    name = operator.lower()
    if any(word in name for word in _CONTRACTIONS):
        return "contraction"
    words = re.findall("[a-z]+", name)
    return "reduction" if any(word in _REDUCTIONS for word in words) else "elementwise"


def _untuned_headroom(task: TuningTask, kind: TargetKind) -> float:
    """The share of the whole call that tuning may save: its fixed part and
    its traffic cannot be tuned away."""
    tuned = max(task.flops / _rates(task, kind).tuned, _moving_seconds(task, kind))
    saved = 1 - (CALL_MS[kind] + tuned * 1e3) / prior_ms(task, kind)
    return max(MIN_HEADROOM, saved)


def _rates(task: TuningTask, kind: TargetKind) -> Rates:
    rates = RATES[kind, operator_class(task.operator)]
    factor = _width_factor(task.dtype)
    return Rates(untuned=rates.untuned * factor, tuned=rates.tuned * factor)


def _moving_seconds(task: TuningTask, kind: TargetKind) -> float:
    return task.bytes_moved / BYTES_PER_SECOND[kind]


def _width_factor(dtype: str) -> float:
    """Speed against float32: as many more values fit a vector as they are narrower."""
    digits = "".join(c for c in dtype.partition("x")[0] if c.isdigit())
    bits = int(digits) if digits else 32
    return 32 / min(max(bits, 8), 64)


# The models that pay for the tuning of a task: those of which one side runs it, or runs it more
# often. What both sides of a model run equally often gets the same schedule on both, however good
# it is, so a comparison gains nothing from tuning it. `tunegate warm` tunes it, where nothing is
# compared. One more run on one side is different: untuned there, it would stand against what is
# tuned on the other.


def paying_sides(task: TuningTask) -> tuple[ModelSide, ...]:
    """Returns the side that runs the task more often, for each model whose sides differ in that."""
    surplus: Counter[ModelPath] = Counter()
    for use in task.uses:
        surplus[use.model] += use.weight if use.side == "head" else -use.weight
    uneven = ((model, count) for model, count in sorted(surplus.items()) if count)
    return tuple((model, "head" if count > 0 else "base") for model, count in uneven)


def is_shared(task: TuningTask) -> bool:
    """Returns whether both sides of every model that uses the task run it equally often."""
    return not paying_sides(task)


# Tasks that a run does not tune, whatever the cache has of them, and the reasons.

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
