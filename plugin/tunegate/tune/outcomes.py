"""Merges the outcomes of several shards and attempts, in any order and any number of times."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import assert_never

import msgspec

from tunegate.artifacts.builds import Build, CellBuilds, unbuilt
from tunegate.artifacts.candidates import FLOAT32, CandidateBuild
from tunegate.artifacts.outcomes import TaskOutcome, TuningOutcome
from tunegate.artifacts.plans import Shard, TuningPlan, total_energy
from tunegate.artifacts.tasks import RecordOrigin, ResolvedTask
from tunegate.artifacts.verdicts import TuningSummary, WarmedModel, WarmedShipping
from tunegate.tune.claims import has_only_older, is_resumed
from tunegate.tune.expected_time import answers_next_run
from tunegate.tune.model_keys import ModelOnTarget, tasks_of_models
from tunegate_cache.format.records import ExactHit, Lookup, Miss, TransferHit, WorkloadKey


def merge_outcomes(outcomes: Iterable[TuningOutcome]) -> tuple[TuningOutcome, ...]:
    """Returns one outcome per shard. If a shard was tuned again after a kill, its longest attempt
    describes it, and each task has the best of all attempts. Attempts are not summed: the same
    outcome twice must change nothing."""
    by_shard: dict[tuple[int, str], list[TuningOutcome]] = {}
    for outcome in outcomes:
        by_shard.setdefault((outcome.shard, outcome.target), []).append(outcome)
    return tuple(_one_shard(attempts) for _, attempts in sorted(by_shard.items()))


def _one_shard(attempts: Sequence[TuningOutcome]) -> TuningOutcome:
    longest = max(attempts, key=_attempt_order)
    by_task: dict[tuple[str, str], list[TaskOutcome]] = {}
    for attempt in attempts:
        for task in attempt.tasks:
            by_task.setdefault((task.key.workload, task.key.target), []).append(task)
    tasks = tuple(_one_task(same) for _, same in sorted(by_task.items()))
    return msgspec.structs.replace(longest, tasks=tasks)


def _one_task(attempts: Sequence[TaskOutcome]) -> TaskOutcome:
    best = min(attempts, key=_order)
    distinct = {msgspec.json.encode(r): r for attempt in attempts for r in attempt.records}
    by_time = sorted(distinct.items(), key=lambda item: (item[1].shrunk_ms, item[0]))
    return msgspec.structs.replace(best, records=tuple(record for _, record in by_time))


def _attempt_order(outcome: TuningOutcome) -> tuple[float, bytes]:
    return (outcome.spent.seconds, _encode(msgspec.structs.replace(outcome, tasks=())))


def _order(task: TaskOutcome) -> tuple[float, int, bytes]:
    """Sorts fastest first, then most tried, then by bytes, so that ties do not depend on the order.
    Records are left out: they grow by merging, and a merged outcome must rank as before."""
    best_ms = float("inf") if task.best_ms is None else task.best_ms
    return (best_ms, -task.trials, _encode(msgspec.structs.replace(task, records=())))


def _encode(struct: msgspec.Struct) -> bytes:
    return msgspec.json.encode(struct, order="deterministic")


# TuningPlan and TuningOutcomes -> TuningSummary: what tuning did, in numbers.

_WORST_FIRST = (
    *("cancelled", "failed", "lost"),
    *("usd", "seconds", "trials", "target-latency", "converged"),
)
"""The reasons from worst to best. A reader of several shards needs the worst; "finished" if none of
these."""


def tally(
    plan: TuningPlan | None,
    outcomes: Sequence[TuningOutcome],
    stale: Collection[TaskOnTarget] = frozenset(),
) -> TuningSummary:
    """Returns the summary. An outcome that came twice counts once. Without a plan nothing was done.
    The `stale` ones have schedules of an older toolchain alone, as far as outcomes say nothing."""
    if plan is None:
        return TuningSummary(
            tasks=0,
            exact=0,
            transfer=0,
            miss=0,
            trials=0,
            seconds=0.0,
            usd=None,
            stopped="finished",
        )
    # What the cache answered comes from the plan, what was done from the outcomes. A shard that was
    # sent twice is one; one that never came is a reason of its own why tuning stopped.
    by_shard = {outcome.shard: outcome for outcome in outcomes}
    counts = Counter(_kind(task.lookup) for task in plan.resolution.tasks)
    prices = [outcome.spent.usd for outcome in by_shard.values()]
    energy = total_energy([outcome.spent for outcome in by_shard.values()])
    parts = partition_of(plan.resolution.tasks, outcomes)
    task_outcomes = [task for outcome in by_shard.values() for task in outcome.tasks]
    older = Counter(task.older for task in task_outcomes)
    reasons: set[str] = {outcome.stopped for outcome in by_shard.values()}
    reasons |= {"lost" for _ in lost_shards(plan, outcomes)}
    exact_hits = {x.task.key for x in plan.resolution.tasks if isinstance(x.lookup, ExactHit)}
    return TuningSummary(
        tasks=len(plan.resolution.tasks),
        exact=counts["exact"],
        transfer=counts["transfer"],
        miss=counts["miss"],
        trials=sum(task.trials for task in task_outcomes),
        seconds=sum(outcome.spent.seconds for outcome in by_shard.values()),
        usd=_total_usd(prices, is_priced=plan.budget.usd_per_hour is not None),
        stopped=next((reason for reason in _WORST_FIRST if reason in reasons), "finished"),
        tuned=len(parts.now),
        measured=len(parts.measured),
        begun=len(parts.begun),
        waiting=len(parts.waiting),
        unfinished=sum(is_resumed(t.task.key, t.lookup) for t in plan.resolution.tasks),
        kept=older["kept"],
        lost=older["lost"],
        still_lost=older["still-lost"],
        not_asked=older["not-asked"] + len({*stale} - {(x.key, x.target) for x in task_outcomes}),
        tried_again=sum(
            x.key in exact_hits and x.trials > 0 and not x.older for x in task_outcomes
        ),
        joules=energy.joules,
        energy_source=energy.source,
    )


def unasked_tasks(plan: TuningPlan, origin: RecordOrigin) -> frozenset[TaskOnTarget]:
    """Returns the tasks that this machine knows from an older toolchain alone. A plan for several
    jobs has none for those without a trial."""
    return frozenset(
        (task.task.key, task.task.target)
        for task in plan.resolution.tasks
        if isinstance(task.lookup, ExactHit) and task.skipped != "behind"
        if has_only_older(task.lookup.records, origin.toolchain, origin.device)
    )


def built_with_older(builds: Iterable[CellBuilds]) -> set[TaskOnTarget]:
    """Returns the tasks that are built with schedules of an older toolchain."""
    return {
        (task.key, build.cell.target)
        for build in builds
        for side in (build.base, build.head)
        for task in (side.tasks if side is not None else ())
        if task.source == "older"
    }


def lost_shards(plan: TuningPlan, outcomes: Sequence[TuningOutcome]) -> tuple[Shard, ...]:
    """Returns the shards with something to tune and no outcome: their runner was lost."""
    came = {outcome.shard for outcome in outcomes}
    return tuple(
        shard
        for shard in plan.shards
        if shard.index not in came and any(task.trials for task in shard.tasks)
    )


def lost_shard_warnings(plan: TuningPlan, outcomes: Sequence[TuningOutcome]) -> Iterator[str]:
    """Returns a line for each lost shard."""
    for shard in lost_shards(plan, outcomes):
        tasks = "1 task was" if len(shard.tasks) == 1 else f"{len(shard.tasks)} tasks were"
        yield (
            f"shard {shard.index} on {shard.target} left no "
            f"outcome-{shard.index}.json: its {tasks} not tuned in this run. What it "
            "had published is in the cache; run its job again."
        )


def _kind(lookup: Lookup) -> str:
    match lookup:
        case ExactHit():
            return "exact"
        case TransferHit():
            return "transfer"
        case Miss():
            return "miss"
        case _:
            assert_never(lookup)


def _total_usd(prices: Sequence[float | None], *, is_priced: bool) -> float | None:
    amounts = [price for price in prices if price is not None]
    return sum(amounts) if amounts or is_priced else None


# The tasks of a model that are known after tuning: finished now, or by an earlier run.


def known_after(
    tasks: Iterable[ResolvedTask], outcomes: Sequence[TuningOutcome]
) -> frozenset[WorkloadKey]:
    """Returns the tasks that the next run has an answer for."""
    keys = {task.task.key for task in tasks if isinstance(task.lookup, ExactHit)}
    keys -= {o.key for outcome in outcomes for o in outcome.tasks if o.older == "not-asked"}
    finished_keys = {o.key for outcome in outcomes for o in outcome.tasks if answers_next_run(o)}
    return frozenset(keys | finished_keys)


def warmed_models(
    resolved_tasks: Sequence[ResolvedTask], outcomes: Sequence[TuningOutcome]
) -> tuple[WarmedModel, ...]:
    """Returns every model on every target, in order."""
    parts = partition_of(resolved_tasks, outcomes)
    known_tasks = parts.before | parts.now | parts.measured
    return tuple(
        WarmedModel(
            model=model,
            target=target,
            tasks=len(of_model),
            known_before=_count(of_model, parts.before),
            known=_count(of_model, known_tasks),
            measured=_count(of_model, parts.measured),
        )
        for (model, target), of_model in sorted(tasks_of_models(resolved_tasks).items())
    )


def shippings(
    places: Iterable[ModelOnTarget],
    builds: Iterable[CellBuilds],
    winners: Mapping[ModelOnTarget, CandidateBuild],
    remembered_places: Collection[ModelOnTarget],
) -> tuple[WarmedShipping, ...]:
    """Returns the candidate that each model ships with: by this run's build, else one of the
    `winners`, which an earlier run elected in `remembered_places`."""
    build_of = {(build.cell.model, build.cell.target): build for build in builds}
    return tuple(
        _of_build(build_of[where])
        if where in build_of
        else _of_elected(where, winners[where], is_remembered=where in remembered_places)
        for where in places
        if where in build_of or where in winners
    )


def _of_build(cell_builds: CellBuilds) -> WarmedShipping:
    head = cell_builds.head or unbuilt("its file is missing")
    return WarmedShipping(
        model=cell_builds.cell.model,
        target=cell_builds.cell.target,
        title="" if head.error else head.title,
        estimates=() if head.error else head.error_estimate,
        is_drawn=not any(each.is_given for each in head.inputs),
        reason=head.error or "",
        trouble=() if head.error else tuple(_trouble(head)),
    )


def _trouble(head: Build) -> Iterator[str]:
    """Yields problems that the next run may pay for again, because nothing was decided about
    them."""
    if head.without_picks:
        yield f"built without transferred schedules, with them: {head.without_picks}"
    if head.without_graphs:
        yield f"built without CUDA graphs, with them: {head.without_graphs}"
    refusals = head.choice.refused if head.choice is not None else ()
    yield from (f"{each.title}: {each.reason}" for each in refusals if not each.is_lasting)


def _of_elected(
    where: ModelOnTarget, winner: CandidateBuild, *, is_remembered: bool
) -> WarmedShipping:
    model, target = where
    return WarmedShipping(
        model=model,
        target=target,
        title=winner.title,
        has_unknown_error=winner.precision != FLOAT32,
        is_remembered=is_remembered,
    )


def _count(tasks: Sequence[ResolvedTask], part: frozenset[TaskOnTarget]) -> int:
    return sum((task.task.key, task.task.target) in part for task in tasks)


# The partition of a run's tasks: each in one part.

TaskOnTarget = tuple[WorkloadKey, str]


class TaskPartition(msgspec.Struct, frozen=True, kw_only=True):
    """`before`: known before the run. `older`: only an older toolchain's schedules are known, not
    asked yet. `now`: finished by it. `measured`: this run timed the default schedule, without a
    trial. `begun`: trials of this run or an earlier one, and no answer. `waiting`: left to
    `tunegate warm`. `untuned`: the rest."""

    before: frozenset[TaskOnTarget]
    older: frozenset[TaskOnTarget] = frozenset()
    now: frozenset[TaskOnTarget]
    measured: frozenset[TaskOnTarget]
    begun: frozenset[TaskOnTarget]
    waiting: frozenset[TaskOnTarget]
    untuned: frozenset[TaskOnTarget]


def partition_of(tasks: Iterable[ResolvedTask], outcomes: Sequence[TuningOutcome]) -> TaskPartition:
    """Returns the parts after these outcomes, or by the cache alone if there are none."""
    outcome_of = {(task.key, task.target): task for outcome in outcomes for task in outcome.tasks}
    parts: dict[str, set[TaskOnTarget]] = {each: set() for each in TaskPartition.__struct_fields__}
    for each in tasks:
        identity = (each.task.key, each.task.target)
        parts[next(_part(each, outcome_of.get(identity)))].add(identity)
    return TaskPartition(**{name: frozenset(keys) for name, keys in parts.items()})


def _part(task: ResolvedTask, outcome: TaskOutcome | None) -> Iterator[str]:
    """Returns the first part that fits."""
    if isinstance(task.lookup, ExactHit):
        is_asked = outcome is None or outcome.older != "not-asked"
        yield "before" if is_asked else "older"
    if outcome is not None and answers_next_run(outcome):
        yield "now" if outcome.trials else "measured"
    if task.is_waiting:
        yield "waiting"
    is_tried = outcome is not None and outcome.trials > 0 and outcome.stopped != "failed"
    if is_tried or is_resumed(task.task.key, task.lookup):
        yield "begun"
    yield "untuned"
