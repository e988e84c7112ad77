"""Records of others on their way into the zone: measured again here, or dropped.

Nothing is copied. A record's schedule is rebuilt from this repository's own modules, its numbers
are compared with the default schedule's, and it is timed beside the zone's best. A winner becomes a
new record of this run.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Literal

import msgspec

from tunegate.artifacts.outcomes import TaskOutcome
from tunegate.artifacts.plans import Budget, PlannedTask, Shard
from tunegate.artifacts.tasks import ResolvedTask, TuningTask
from tunegate.config import Config
from tunegate.models.export_models import ModelFiles
from tunegate.ports import Publish, Tuner
from tunegate.tools import RunContext
from tunegate.tune.budget import Spending, left_after, resolve_budget
from tunegate.tune.claims import resume_point
from tunegate.wording import plural
from tunegate_cache.format.records import ExactHit, Lookup, TransferHit, TuningRecord, WorkloadKey

BEST_OF_EACH = 2
MEASUREMENT_NOISE = 0.03
"""A record must beat the default schedule by more than two confirmed measurements differ."""
IMPLAUSIBLE_RATIO = 1.3
"""A record is wrong if its time on the same kind of device is this many times its claim."""

RevalidationStatus = Literal["taken", "known", "slower", "rejected", "not-measured"]


class Revalidated(msgspec.Struct, frozen=True, kw_only=True):
    """The result for the best record of one task. `slower`: than the zone's best, or no faster than
    the default. `rejected`: it did not replay, build, run or compute right, for this `reason`."""

    name: str
    key: WorkloadKey
    status: RevalidationStatus
    claimed_ms: float
    measured_ms: float | None = None
    incumbent_ms: float | None = None
    is_implausible: bool = False
    reason: str = ""


class Challenge(msgspec.Struct, frozen=True, kw_only=True):
    """A task with records to revalidate, and the record to beat."""

    task: TuningTask
    challengers: tuple[TuningRecord, ...]
    incumbent: TuningRecord | None


def challenges(
    tasks: Iterable[TuningTask],
    foreign_lookups: Mapping[WorkloadKey, Lookup],
    own_lookups: Mapping[WorkloadKey, Lookup],
) -> tuple[Challenge, ...]:
    """Returns, for every task, the best few schedules that the zone lacks. That the default
    schedule won is an answer too, where the zone has none."""
    pairs = []
    for task in tasks:
        schedules = _schedules(own_lookups.get(task.key))
        own_schedules = {_identity(record) for record in schedules}
        theirs = _records(foreign_lookups.get(task.key))
        new = [r for r in theirs if r.template and _identity(r) not in own_schedules][:BEST_OF_EACH]
        if theirs and not theirs[0].template and not _records(own_lookups.get(task.key)):
            new.insert(0, theirs[0])
        if new:
            pairs.append(
                Challenge(
                    task=task, challengers=tuple(new), incumbent=schedules[0] if schedules else None
                )
            )
    return tuple(pairs)


def revalidation_shard(target: str, challenges: Sequence[Challenge], budget: Budget) -> Shard:
    """Returns the shard of records to measure on one target."""
    tasks = tuple(
        PlannedTask(resolved=ResolvedTask(c.task, _seeds(c)), trials=0, gain_ms=0.0)
        for c in challenges
        if c.task.target == target
    )
    return Shard(
        index=0,
        target=target,
        labels=(),
        tasks=tasks,
        budget=budget,
        predicted_seconds=0.0,
    )


def result_of(
    challenge: Challenge, outcome: TaskOutcome | None
) -> tuple[Revalidated, TuningRecord | None]:
    """Returns the result of a challenge, and the record to publish if it won."""
    claim = challenge.challengers[0]
    if outcome is None or outcome.stopped == "not-started":
        waiting = _build_revalidated(challenge, claim, "not-measured", None, outcome)
        return msgspec.structs.replace(waiting, reason="the budget ended before it"), None
    challengers = {_identity(r): r for r in challenge.challengers}
    results = [r for r in outcome.records if _identity(r) in challengers]
    if not results:
        revalidation = _build_revalidated(challenge, claim, "rejected", None, outcome)
        return msgspec.structs.replace(revalidation, reason=_reason_of(outcome)), None
    best = min(results, key=lambda record: record.median_ms)
    default = next((record for record in results if not record.template), None)
    if default is not None and not _beats_default(best, outcome):
        best = default
    claim = challengers[_identity(best)]
    others = [
        r.median_ms for r in outcome.records if r.template and _identity(r) not in challengers
    ]
    is_worth = not best.template or _beats_default(best, outcome)
    if not is_worth or any(best.median_ms >= other for other in others):
        return _build_revalidated(challenge, claim, "slower", best, outcome), None
    return _build_revalidated(challenge, claim, "taken", best, outcome), best


def _reason_of(outcome: TaskOutcome) -> str:
    """Returns why candidates failed: the first one's own words after the kinds of failure."""
    kinds = ", ".join(outcome.failures) or "it does not apply"
    return f"{kinds}: {outcome.detail}" if outcome.detail else kinds


def _beats_default(record: TuningRecord, outcome: TaskOutcome) -> bool:
    default_ms = outcome.before_ms
    return default_ms is None or record.median_ms < default_ms * (1 - MEASUREMENT_NOISE)


def _build_revalidated(
    challenge: Challenge,
    claim: TuningRecord,
    status: RevalidationStatus,
    result: TuningRecord | None,
    outcome: TaskOutcome | None,
) -> Revalidated:
    incumbent = None if challenge.incumbent is None else _identity(challenge.incumbent)
    records = outcome.records if outcome is not None else ()
    beside = next((r.median_ms for r in records if _identity(r) == incumbent), None)
    default_ms = None if outcome is None else outcome.before_ms
    return Revalidated(
        name=challenge.task.uses[0].name,
        key=challenge.task.key,
        status=status,
        claimed_ms=claim.median_ms,
        measured_ms=None if result is None else result.median_ms,
        incumbent_ms=beside if beside is not None else default_ms,
        is_implausible=result is not None
        and result.device.name == claim.device.name
        and result.median_ms > IMPLAUSIBLE_RATIO * claim.median_ms,
    )


def _seeds(challenge: Challenge) -> TransferHit:
    incumbent = () if challenge.incumbent is None else (challenge.incumbent,)
    records = (*challenge.challengers, *incumbent)
    return resume_point(challenge.task.key, ExactHit(records))


def _records(lookup: Lookup | None) -> tuple[TuningRecord, ...]:
    return lookup.records if isinstance(lookup, ExactHit) else ()


def _schedules(lookup: Lookup | None) -> list[TuningRecord]:
    return [record for record in _records(lookup) if record.template]


def _identity(record: TuningRecord) -> tuple[str, tuple[object, ...]]:
    return record.template, record.decisions


# Revalidates records of others on every target, within the budget.


def revalidate(
    challenges: Sequence[Challenge],
    models: ModelFiles,
    tuner: Tuner,
    config: Config,
    *,
    context: RunContext,
    publish: Publish,
) -> tuple[tuple[Revalidated, ...], bool]:
    """Returns the result of every challenge, and whether all winners were delivered. Those of a
    target are published before the next is measured, so a cancelled run keeps them. All targets
    together have the budget of a run. Raises ConfigError for a price that is not known."""
    left, are_published = config.budget, True
    outcomes: dict[WorkloadKey, TaskOutcome] = {}
    targets = {target.name: target for target in config.targets}
    for name in dict.fromkeys(challenge.task.target for challenge in challenges):
        spending = Spending(budget=resolve_budget(left, targets[name]))
        if spending.is_spent:
            break
        began = context.clock.monotonic()
        shard = revalidation_shard(name, challenges, spending.budget)
        context.progress.step(f"measure: {plural(len(shard.tasks), 'task')} on {name}")
        outcomes_here = {outcome.key: outcome for outcome in tuner.recheck(shard, models)}
        outcomes.update(outcomes_here)
        here = [c for c in challenges if c.task.target == name]
        winners = [result_of(c, outcomes.get(c.task.key))[1] for c in here]
        are_published &= publish([winner for winner in winners if winner is not None])
        seconds = context.clock.monotonic() - began
        trials = sum(outcome.trials for outcome in outcomes_here.values())
        left = left_after(left, msgspec.structs.replace(spending, seconds=seconds, trials=trials))
    return tuple(result_of(c, outcomes.get(c.task.key))[0] for c in challenges), are_published
