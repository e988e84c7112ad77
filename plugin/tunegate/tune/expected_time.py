"""The expected time of a task, and the share that tuning can save, before anything is measured.

Rough on purpose: it only decides which task comes first and how the first trials are shared. The
rates come from one small machine, and only their ratios matter.
"""

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
from tunegate.tune.claims import is_resumed, is_unfinished
from tunegate.tune.improvement import FROM_NOTHING, INFORMED, Pace, TaskState
from tunegate.tune.model_keys import ModelOnTarget
from tunegate_cache.format.records import ExactHit, Miss, TransferHit, WorkloadKey

TargetKind = Literal["llvm", "cuda"]
OperatorClass = Literal["contraction", "reduction", "elementwise"]


class Rates(msgspec.Struct, frozen=True, kw_only=True):
    """Operations per second in float32, before tuning (with the default schedule) and after."""

    before: float
    after: float


RATES: dict[tuple[TargetKind, OperatorClass], Rates] = {
    ("llvm", "contraction"): Rates(before=1.2e9, after=3e10),
    ("llvm", "reduction"): Rates(before=8e8, after=2e9),
    ("llvm", "elementwise"): Rates(before=1e9, after=1.5e9),
    ("cuda", "contraction"): Rates(before=2e11, after=6e12),
    ("cuda", "reduction"): Rates(before=5e10, after=1.5e11),
    ("cuda", "elementwise"): Rates(before=1e11, after=2e11),
}
BYTES_PER_SECOND: dict[TargetKind, float] = {"llvm": 4e9, "cuda": 4e11}
CALL_MS: dict[TargetKind, float] = {"llvm": 0.002, "cuda": 0.005}
"""The least time of a call, and the time of calls without a flop count."""
MIN_HEADROOM = 0.05
"""Even apparent data movement may hide a bad loop order."""
TRANSFER_HEADROOM = 0.25
"""The share that a search still saves over a neighbour's schedule (3 to 15% for matrix
products)."""
TRANSFER_HEADROOM_PER_DISTANCE = 0.05
PACES: dict[TargetKind, Pace] = {"llvm": INFORMED, "cuda": FROM_NOTHING}
"""Measurements of other tasks exist for CPUs only (`cost_model/data`)."""
SECONDS_PER_TRIAL: dict[TargetKind, float] = {"llvm": 0.4, "cuda": 0.8}
"""Search, build and overhead of one candidate, with all workers busy."""
RUNS_PER_TRIAL = 20

_CONTRACTIONS = ("conv", "matmul", "dense", "gemm", "einsum", "attention", "lstm", "gru")
_REDUCTIONS = ("pool", "softmax", "norm", "sum", "mean", "max", "min", "argmax", "cumsum")


def prior_ms(task: TuningTask, kind: TargetKind = "llvm") -> float:
    """Returns the expected time of one call with the default schedule."""
    computing = task.flops / _rates(task, kind).before
    return CALL_MS[kind] + max(computing, _moving_seconds(task, kind)) * 1e3


def known_ms(task: ResolvedTask, kind: TargetKind) -> float:
    """Returns the present time of one call, measured if there are records of this task."""
    lookup = task.lookup
    if isinstance(lookup, ExactHit) or is_resumed(task.task.key, lookup):
        records = () if isinstance(lookup, Miss) else lookup.records
        best_ms = min((record.shrunk_ms for record in records), default=math.inf)
        if math.isfinite(best_ms):
            return best_ms
    return prior_ms(task.task, kind)


def assumed_headroom(task: ResolvedTask, kind: TargetKind) -> float:
    """Returns the share of its time that a search is expected to save at best, 0 without a
    search."""
    if task.is_settled:
        return 0.0
    match task.lookup:
        case TransferHit(distance=distance):
            over_neighbour = TRANSFER_HEADROOM + TRANSFER_HEADROOM_PER_DISTANCE * distance
            return min(over_neighbour, _untuned_headroom(task.task, kind))
        case ExactHit() | Miss():
            return _untuned_headroom(task.task, kind)


def seconds_per_trial(task: TuningTask, kind: TargetKind) -> float:
    """Returns the wall clock of one candidate of a task, before anything is measured."""
    return seconds_of_a_trial(prior_ms(task, kind), kind)


def seconds_of_a_trial(call_ms: float, kind: TargetKind) -> float:
    """Returns the wall clock of one candidate. A slow function adds the time of its runs."""
    return SECONDS_PER_TRIAL[kind] + min(1.0, RUNS_PER_TRIAL * call_ms / 10 / 1e3)


def weight_of(task: TuningTask) -> int:
    """Returns the calls per inference over all models, counting the side with more."""
    calls: dict[str, dict[Side, int]] = {}
    for use in task.uses:
        sides = calls.setdefault(use.model, {})
        sides[use.side] = sides.get(use.side, 0) + use.weight
    return sum(max(sides.values()) for sides in calls.values())


def starting_state(task: PlannedTask, kind: TargetKind) -> TaskState:
    """Returns the scheduler's state of a task before its first batch."""
    return TaskState(
        weight=weight_of(task.resolved.task),
        prior_ms=known_ms(task.resolved, kind),
        # A transferred schedule is not measured yet: its first batch is worth the most.
        headroom=0.0 if task.resolved.is_settled else _untuned_headroom(task.resolved.task, kind),
        flops=task.resolved.task.flops,
        bytes_moved=task.resolved.task.bytes_moved,
        pace=PACES[kind],
        sides=paying_sides(task.resolved.task),
    )


def operator_class(operator: str) -> OperatorClass:
    """Returns the class of a fused operator by the names in it: `conv2d_add_relu` is a
    contraction."""
    name = operator.lower()
    if any(word in name for word in _CONTRACTIONS):
        return "contraction"
    words = re.findall("[a-z]+", name)
    return "reduction" if any(word in _REDUCTIONS for word in words) else "elementwise"


def _untuned_headroom(task: TuningTask, kind: TargetKind) -> float:
    """Returns the share of a call that tuning may save. Its fixed part and its memory traffic
    stay."""
    tuned_seconds = max(task.flops / _rates(task, kind).after, _moving_seconds(task, kind))
    saved_share = 1 - (CALL_MS[kind] + tuned_seconds * 1e3) / prior_ms(task, kind)
    return max(MIN_HEADROOM, saved_share)


def _rates(task: TuningTask, kind: TargetKind) -> Rates:
    rates = RATES[kind, operator_class(task.operator)]
    factor = _width_factor(task.dtype)
    return Rates(before=rates.before * factor, after=rates.after * factor)


def _moving_seconds(task: TuningTask, kind: TargetKind) -> float:
    return task.bytes_moved / BYTES_PER_SECOND[kind]


def _width_factor(dtype: str) -> float:
    """Returns the speed against float32: more narrow values fit a vector."""
    digits = "".join(c for c in dtype.partition("x")[0] if c.isdigit())
    bits = int(digits) if digits else 32
    return 32 / min(max(bits, 8), 64)


# The models that pay for a task: those with a side that runs it alone, or more often.
#
# A task that both sides run equally often gets one schedule on both, so a comparison gains nothing
# from tuning it; `tunegate warm` tunes it. One more call on one side is different: untuned there,
# it would stand against tuned tasks on the other side.


def paying_sides(task: TuningTask) -> tuple[ModelSide, ...]:
    """Returns, for each model whose sides differ, the side that runs the task more often."""
    surplus: Counter[ModelPath] = Counter()
    for use in task.uses:
        surplus[use.model] += use.weight if use.side == "head" else -use.weight
    uneven = ((model, count) for model, count in sorted(surplus.items()) if count)
    return tuple((model, "head" if count > 0 else "base") for model, count in uneven)


def is_shared(task: TuningTask) -> bool:
    """Returns whether both sides of every model run the task equally often."""
    return not paying_sides(task)


# Tasks that a run does not tune, whatever the cache holds, and why.

IsFarBehind = Callable[[Sequence[TuningTask]], Collection[ModelOnTarget]]
"""The models of these tasks that stay far behind another runtime."""


def nobody(_: Sequence[TuningTask]) -> Collection[ModelOnTarget]:
    """Returns no model: none is known to be far behind."""
    return ()


def skipped_tasks(
    tasks: Sequence[TuningTask], far_behind: Collection[ModelOnTarget]
) -> dict[tuple[WorkloadKey, str], Skipped]:
    """Returns the reason for each task, '' for tasks that the run tunes."""
    at_head = {(u.model, task.target) for task in tasks for u in task.uses if u.side == "head"}
    return {(task.key, task.target): _skip_reason(task, far_behind, at_head) for task in tasks}


def _skip_reason(
    task: TuningTask, far_behind: Collection[ModelOnTarget], at_head: Collection[ModelOnTarget]
) -> Skipped:
    """Returns the reason. A base does not pay for a head that is not compiled; it is built from
    known records. A shared task whose models are all far behind waits for nothing."""
    sides = paying_sides(task)
    paying = {model for model, _ in sides if (model, task.target) in at_head}
    paying_or_all = paying or {use.model for use in task.uses}
    if all((model, task.target) in far_behind for model in paying_or_all):
        return "behind"
    return "" if paying else "shared"


# Tasks that the next run has an answer for.


def answers_next_run(outcome: TaskOutcome) -> bool:
    """Returns whether the search is finished and its winner confirmed."""
    own = tuple(record for record in outcome.records if record.key == outcome.key)
    return bool(own) and not is_unfinished(ExactHit(own))
