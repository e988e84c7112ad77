"""Shard -> TuningOutcome: drives a tuner, and keeps every finished result whatever happens."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Literal

import msgspec

from tunegate.artifacts.changes import ModelPath, Side
from tunegate.artifacts.inputs import ShapedModel
from tunegate.artifacts.outcomes import TaskOutcome, TuningOutcome
from tunegate.artifacts.plans import PlannedTask, Shard
from tunegate.errors import CancelledError
from tunegate.ports import RecordQueue, Tuner
from tunegate.tools import RunContext
from tunegate.tune.budget import EnergyUse, Limit, Spending, clock_limit
from tunegate.tune.expected_time import TargetKind, known_ms
from tunegate.tune.headroom import CurvePoint
from tunegate.wording import busy_load, milliseconds, plural
from tunegate_cache.format.records import ExactHit, TuningRecord, WorkloadKey

_FLUSH_SECONDS = 3.0
_NAME_LENGTH = 70
"""A cap is never overrun by 5; what is still on its way then is delivered by the next run."""


def tune(
    shard: Shard,
    models: Mapping[tuple[ModelPath, Side], ShapedModel],
    *,
    tuner: Tuner,
    index: RecordQueue,
    context: RunContext,
) -> TuningOutcome:
    """Tunes one shard. If cancelled it returns what is done, with `stopped` 'cancelled'."""
    fingerprint = context.device.fingerprint()
    run = _Run(shard, context, "cuda" if fingerprint.kind == "cuda" else "llvm")
    publisher = _Publisher(index)
    batches = tuner.tune(shard, models, publisher)
    is_cancelled = False
    try:
        for outcome in batches:
            run.enter(outcome)
    except (KeyboardInterrupt, CancelledError):
        is_cancelled = True
    finally:
        _close(batches)
    spending = run.spending()
    # The cap is on tuning. A store that hangs takes its own few seconds.
    missing = publisher.flush()
    unpublished_notes = (f"records not published to the cache: {missing}",) if missing else ()
    tasks = final_outcomes(shard.tasks, run.latest, is_cancelled=is_cancelled)
    end = "cancelled" if is_cancelled else why_ended(tasks, spending)
    untried_notes = _untried_note(context) if end == "seconds" and not spending.trials else ()
    return TuningOutcome(
        shard=shard.index,
        target=shard.target,
        tasks=tasks,
        spent=spending.cost,
        device=fingerprint,
        stopped=end,
        curve=tuple(run.curve),
        notes=(*unpublished_notes, *untried_notes, *tuner.notes),
        unpublished=missing,
    )


class _Run:
    """The latest outcome of each task, and the end-to-end estimate over time."""

    def __init__(self, shard: Shard, context: RunContext, kind: TargetKind) -> None:
        self._shard = shard
        self._side: Side = _side_of(shard)
        self._of_base = {
            task.resolved.task.key for task in shard.tasks if task.resolved.task.is_of_base_alone
        }
        self._clock, self._progress = context.clock, context.progress
        self._started = self._clock.monotonic()
        self._energy = EnergyUse(context.energy)
        self.latest: dict[WorkloadKey, TaskOutcome] = {}
        self._trials = 0
        # The estimate is of one side: the sum of both would be the time of no model. It is kept up
        # to date, because a sum over all tasks for each outcome takes minutes for thousands.
        resolved_tasks = [task.resolved for task in shard.tasks]
        self._calls = {each.task.key: each.task.calls_on(self._side) for each in resolved_tasks}
        self._known_ms = {each.task.key: known_ms(each, kind) for each in resolved_tasks}
        self._now_ms = dict(self._known_ms)
        self._estimate_ms = sum(self._calls[key] * ms for key, ms in self._known_ms.items())
        self.curve: list[CurvePoint] = [(0.0, self._estimate_ms)]

    def enter(self, outcome: TaskOutcome) -> None:
        before = self.latest.get(outcome.key)
        self.latest[outcome.key] = outcome
        self._trials += outcome.trials - (0 if before is None else before.trials)
        self._update_estimate(outcome)
        spending = self.spending()
        if self._estimate_ms != self.curve[-1][1]:
            self.curve.append((spending.seconds, self._estimate_ms))
        text = f"{self._name(outcome)}: {_describe_progress(outcome)}"
        whole = f"all tasks of {self._side} {milliseconds(self._estimate_ms)}"
        self._progress.update(
            f"{text}; {whole}; {_describe_spending(spending)}", spending.seconds_left
        )

    def spending(self) -> Spending:
        seconds = max(0.0, self._clock.monotonic() - self._started)
        energy = self._energy.total()
        return Spending(
            budget=self._shard.budget,
            seconds=seconds,
            trials=self._trials,
            joules=energy.joules,
            energy_source=energy.source,
        )

    def _name(self, outcome: TaskOutcome) -> str:
        """Returns the name of a task. A changed layer of the base has the head's name."""
        return f"{_shorten_name(outcome.name)}{' (base)' if outcome.key in self._of_base else ''}"

    def _update_estimate(self, outcome: TaskOutcome) -> None:
        key = outcome.key
        now_ms = self._known_ms[key] if outcome.best_ms is None else outcome.best_ms
        self._estimate_ms += self._calls[key] * (now_ms - self._now_ms[key])
        self._now_ms[key] = now_ms


class _Publisher:
    """Publishes records, and knows which ones the cache has not taken. A tuner may offer a record
    again."""

    def __init__(self, index: RecordQueue) -> None:
        self._index = index
        self._refused: set[TuningRecord] = set()

    def __call__(self, records: Sequence[TuningRecord]) -> bool:
        is_published = self._index.enqueue(records)
        if is_published:
            self._refused.difference_update(records)
        else:
            self._refused.update(records)
        return is_published

    def flush(self) -> int:
        """Returns the number of records that the cache lacks, after a last wait for those on their
        way."""
        waiting = 0
        with suppress(KeyboardInterrupt, CancelledError):
            waiting = self._index.flush(_FLUSH_SECONDS)
        return len(self._refused) + waiting


def _untried_note(context: RunContext) -> tuple[str, ...]:
    """Returns the note on a machine that was too busy for a trial."""
    load = busy_load(context.device.environment())
    return (f"no trial fitted into the time: {load}. Tune on a quieter runner",) if load else ()


def _side_of(shard: Shard) -> Side:
    """Returns the side whose time is shown: head, or base if no task is of head."""
    sides = {use.side for task in shard.tasks for use in task.resolved.task.uses}
    return "base" if sides == {"base"} else "head"


def _describe_progress(outcome: TaskOutcome) -> str:
    """Returns the progress in words. The report has the second measurements of the best few."""
    best = "no time yet" if outcome.best_ms is None else f"{milliseconds(outcome.best_ms)} so far"
    if outcome.trials:
        return f"{best}, {plural(outcome.trials, 'trial')}"
    return "not tried" if outcome.best_ms is None else f"{milliseconds(outcome.best_ms)}, no trial"


def _describe_spending(spending: Spending) -> str:
    """Returns the spent budget in words."""
    of = "" if spending.budget.seconds is None else f" of {spending.budget.seconds:.0f}"
    return f"{spending.seconds:.0f}{of} s, {plural(spending.trials, 'trial')}"


def _shorten_name(name: str) -> str:
    """Shortens the name of a fused kernel, which lists all of its operators."""
    return name if len(name) <= _NAME_LENGTH else f"{name[: _NAME_LENGTH - 1]}…"


def _close(batches: Iterator[TaskOutcome]) -> None:
    """Ends the tuner's children now. A second interrupt must not lose the outcome."""
    close: Callable[[], None] | None = getattr(batches, "close", None)
    if close is not None:
        with suppress(KeyboardInterrupt, CancelledError):
            close()


# The end of a shard's tuning: an outcome for every planned task, and one reason for the run.

RunEnd = Literal["finished", "converged", "target-latency", "seconds", "usd", "trials", "failed"]

_TOO_SHORT_SHARE = 0.5
"""A run that measured nothing and used this share of its time had too little of it: it ends before
its cap if no candidate could be measured by then."""
_UNTOUCHED = frozenset({"exact", "not-started", "shared", "behind"})


def final_outcomes(
    tasks: Sequence[PlannedTask],
    latest: Mapping[WorkloadKey, TaskOutcome],
    *,
    is_cancelled: bool,
) -> tuple[TaskOutcome, ...]:
    """Returns an outcome for each planned task, in the plan's order. Unfinished ones are
    'cancelled', because a tuner ends a task only when all have ended."""
    outcomes = []
    for task in tasks:
        outcome = latest.get(task.resolved.task.key) or _untouched_outcome(task)
        if is_cancelled and outcome.stopped not in _UNTOUCHED:
            outcome = msgspec.structs.replace(outcome, stopped="cancelled")
        outcomes.append(outcome)
    return tuple(outcomes)


def why_ended(tasks: Sequence[TaskOutcome], spending: Spending) -> RunEnd:
    """Returns why the run ended: the limit, if one kept tasks from their end; 'failed' if nothing
    ever ran; 'converged' if a task was left because more trials promise too little; 'finished' if
    no trial was left."""
    stops = {task.stopped for task in tasks}
    if "target-latency" in stops:
        return "target-latency"
    tuned_tasks = [task for task in tasks if task.trials]
    is_out = spending.is_spent or (not tuned_tasks and _clock_share(spending) >= _TOO_SHORT_SHARE)
    if "budget" in stops or ("not-started" in stops and is_out):
        return spending.limit or _nearest_limit(spending)
    if tuned_tasks and all(task.stopped == "failed" for task in tuned_tasks):
        return "failed"
    return "converged" if any(task.stopped == "converged" for task in tuned_tasks) else "finished"


def _clock_share(spending: Spending) -> float:
    seconds = spending.budget.seconds
    return spending.seconds / seconds if seconds else 0.0


def _nearest_limit(spending: Spending) -> Limit:
    """Returns the limit that stopped a tuner when no further batch would fit."""
    budget = spending.budget
    clock = _clock_share(spending)
    counter = 0.0 if not budget.trials else spending.trials / budget.trials
    return "trials" if counter > clock else clock_limit(budget)


def _untouched_outcome(planned_task: PlannedTask) -> TaskOutcome:
    """Returns the outcome of a task that the tuner did not touch."""
    task, lookup = planned_task.resolved.task, planned_task.resolved.lookup
    records = lookup.records if isinstance(lookup, ExactHit) else ()
    best_ms = min((record.median_ms for record in records if record.status == "ok"), default=None)
    return TaskOutcome(
        key=task.key,
        target=task.target,
        name=task.uses[0].name if task.uses else task.operator,
        source="exact" if records else "default",
        records=records,
        trials=0,
        before_ms=best_ms,
        best_ms=best_ms,
        seconds=0.0,
        stopped="exact" if records else "not-started",
    )
