"""The lines that the history keeps of a run: one for each model, with its share of all that the run
cost and saved."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Literal

import msgspec

from tunegate.artifacts.builds import CellBuilds
from tunegate.artifacts.history import MAX_TEXT, CostSum, HistoryEntry, ModelCost, RunFacts
from tunegate.artifacts.measurements import CellMeasurement, MeasurementRun
from tunegate.artifacts.outcomes import TaskOutcome, TuningOutcome
from tunegate.artifacts.plans import SECONDS_PER_HOUR, TuningPlan
from tunegate.artifacts.tasks import ResolvedTask, TuningTask
from tunegate.artifacts.verdicts import Finding, Report
from tunegate.tune.model_keys import ModelOnTarget
from tunegate_cache.format.names import group_of
from tunegate_cache.format.records import DeviceFingerprint, ExactHit, TransferHit, WorkloadKey

VERSION = " version"
"""The suffix of machine facts that are a package's version."""


def history_entries(
    report: Report,
    facts: RunFacts,
    usd_per_hour: Mapping[str, float | None],
    work_seconds: float = 0.0,
) -> tuple[HistoryEntry, ...]:
    """Returns a line for everything that was measured or cost something. `work_seconds` is what the
    run took besides tuning, if known."""
    run = report.run
    costs = model_costs(report.plan, report.outcomes, run, usd_per_hour)
    costs = with_rest(costs, work_seconds, usd_per_hour)
    keys = _target_keys(report.plan)
    return tuple(
        _add_run_facts(
            facts,
            HistoryEntry(
                at=facts.at,
                commit=report.verdict.revisions.head,
                model=_shorten(finding.model),
                target=finding.target,
                device=_shorten(_device_name(run, finding.target)),
                runtime=_runtime(run, finding),
                status=finding.status,
                base_ms=finding.base_ms,
                head_ms=finding.head_ms,
                change_percent=finding.change_percent,
                trials=report.verdict.tuning.trials,
                target_key=keys.get(finding.target, ""),
                reason=_shorten(finding.reason),
                versions=_versions(run.environment) if run is not None else {},
                cost=costs.get((finding.model, finding.target)),
            ),
        )
        for finding in report.verdict.findings
        if _is_kept(finding, costs.get((finding.model, finding.target)))
    )


class TuningMachine(msgspec.Struct, frozen=True):
    """The machine that tuned, with facts about it."""

    device: DeviceFingerprint
    environment: Mapping[str, str]


class Unfinished(msgspec.Struct, frozen=True, kw_only=True):
    """The end of a run before its verdict. `gate_seconds` went into everything but tuning until
    then, at `usd_per_hour` of each target."""

    status: Literal["cancelled", "aborted"]
    reason: str
    gate_seconds: float
    usd_per_hour: Mapping[str, float | None]


def warmed_entries(
    plan: TuningPlan,
    outcomes: Sequence[TuningOutcome],
    facts: RunFacts,
    machine: TuningMachine,
    shipped: Shipped,
    *,
    usd_per_hour: Mapping[str, float | None],
    work_seconds: float,
) -> tuple[HistoryEntry, ...]:
    """Returns a line for each model that was tuned and not compared. `work_seconds` is all time
    besides tuning."""
    costs = model_costs(plan, outcomes, None, {}, shipped)
    costs = with_rest(costs, work_seconds, usd_per_hour)
    return tuple(_without_latency(plan, outcomes, facts, machine, costs))


def unfinished_entries(
    plan: TuningPlan,
    outcomes: Sequence[TuningOutcome],
    facts: RunFacts,
    machine: TuningMachine,
    ending: Unfinished,
) -> tuple[HistoryEntry, ...]:
    """Returns a line for each model of a run that did not finish. It shipped nothing, so tuning
    gained nothing. Its time besides tuning is shared evenly."""
    costs_so_far = model_costs(plan, outcomes, None, {})
    places = ((model.path, target) for model in plan.changes.models for target in model.targets)
    every = {place: ModelCost() for place in places} | costs_so_far
    costs = with_rest(every, ending.gate_seconds, ending.usd_per_hour)
    return tuple(
        msgspec.structs.replace(entry, status=ending.status, reason=_shorten(ending.reason))
        for entry in _without_latency(plan, outcomes, facts, machine, costs)
    )


def _without_latency(
    plan: TuningPlan,
    outcomes: Sequence[TuningOutcome],
    facts: RunFacts,
    machine: TuningMachine,
    costs: Mapping[ModelOnTarget, ModelCost],
) -> Iterator[HistoryEntry]:
    """Yields the lines of models without a verdict. If no change was judged, a hit saved
    nothing."""
    keys = _target_keys(plan)
    nothing_saved = {"saved_trials": 0.0, "saved_seconds": 0.0, "saved_usd": None}
    for (model, target), cost in sorted(costs.items()):
        entry = HistoryEntry(
            at=facts.at,
            commit=plan.changes.revisions.head,
            model=_shorten(model),
            target=target,
            device=_shorten(machine.device.name),
            runtime="",
            status="warmed",
            base_ms=None,
            head_ms=None,
            trials=sum(task.trials for outcome in outcomes for task in outcome.tasks),
            target_key=keys.get(target, ""),
            versions=_versions(machine.environment),
            cost=msgspec.structs.replace(cost, **nothing_saved),
        )
        yield _add_run_facts(facts, entry)


def _add_run_facts(facts: RunFacts, entry: HistoryEntry) -> HistoryEntry:
    return msgspec.structs.replace(
        entry,
        release=_shorten(facts.release),
        repository=_shorten(facts.repository),
        change=facts.change,
        is_aside=facts.is_aside,
        authored=facts.authored,
        run_url=facts.run_url,
    )


def _is_kept(finding: Finding, cost: ModelCost | None) -> bool:
    return finding.head_ms is not None or (cost is not None and _is_some(cost))


def _is_some(cost: ModelCost) -> bool:
    return bool(cost.seconds or cost.tasks or cost.gate_seconds)


def _device_name(run: MeasurementRun | None, target: str) -> str:
    if run is None:
        return ""
    shards = (shard.device.name for shard in run.shards if shard.target == target)
    return next(shards, run.device.name)


def _runtime(run: MeasurementRun | None, finding: Finding) -> str:
    place = (finding.model, finding.target)
    for built in run.builds if run is not None else ():
        if (built.cell.model, built.cell.target) == place and built.head is not None:
            return built.head.runtime
    return ""


def _target_keys(plan: TuningPlan | None) -> dict[str, str]:
    tasks = plan.resolution.tasks if plan is not None else ()
    return {task.task.target: group_of("", task.task.key.target).target for task in tasks}


def _versions(environment: Mapping[str, str]) -> dict[str, str]:
    return dict(_found_versions(environment))


def _found_versions(environment: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    for name, value in sorted(environment.items()):
        if name.endswith(VERSION):
            yield name.removesuffix(VERSION), _shorten(value)


def _shorten(text: str) -> str:
    """Returns the text cut to the readable length."""
    return text[:MAX_TEXT]


# The costs and savings of each model of a run: all spending, shared among the models.


def model_costs(
    plan: TuningPlan | None,
    outcomes: Sequence[TuningOutcome],
    run: MeasurementRun | None,
    usd_per_hour: Mapping[str, float | None],
    shipped: Shipped = (),
) -> dict[ModelOnTarget, ModelCost]:
    """Returns the spending of every model on every target; `usd_per_hour` has each target's price.
    Money is None if nothing has a price. Only `shipped` tasks (here, or by the builds of `run`)
    count as gains."""
    compiled = {*shipped, *of_builds(run.builds if run is not None else ())}
    totals: dict[ModelOnTarget, dict[str, float]] = defaultdict(dict)
    for place, part in _parts(plan, outcomes, run, usd_per_hour, compiled):
        total = totals[place]
        for name, amount in part.items():
            total[name] = total.get(name, 0.0) + amount
    return {place: ModelCost(**total) for place, total in totals.items()}


def with_rest(
    costs: Mapping[ModelOnTarget, ModelCost],
    work_seconds: float,
    usd_per_hour: Mapping[str, float | None],
) -> dict[ModelOnTarget, ModelCost]:
    """Returns the costs including the rest of the run, besides tuning and their own launches and
    builds: finding tasks, trying builds, choosing what ships. `work_seconds` is all of the run's
    time but tuning. The rest is shared in proportion to the costs, or evenly if they have none."""
    gate_seconds = sum(cost.gate_seconds for cost in costs.values())
    rest = max(0.0, work_seconds - gate_seconds)

    def with_gate_cost(place: ModelOnTarget, cost: ModelCost) -> ModelCost:
        seconds = rest * (cost.gate_seconds / gate_seconds if gate_seconds else 1 / len(costs))
        price = usd_per_hour.get(place[1])
        usd = None if price is None else seconds * price / SECONDS_PER_HOUR
        return together([cost, ModelCost(gate_seconds=seconds, gate_usd=usd)])

    return {place: with_gate_cost(place, cost) for place, cost in costs.items()}


def together(parts: Sequence[ModelCost]) -> ModelCost:
    """Returns the sum; money is None if no part has any."""
    sums: dict[str, float] = {}
    for name in ModelCost.__struct_fields__:
        amounts = [amount for part in parts if (amount := getattr(part, name)) is not None]
        if amounts:
            sums[name] = sum(amounts)
    return ModelCost(**sums)


def _parts(
    plan: TuningPlan | None,
    outcomes: Sequence[TuningOutcome],
    run: MeasurementRun | None,
    usd_per_hour: Mapping[str, float | None],
    compiled: Shipped,
) -> Iterator[tuple[ModelOnTarget, dict[str, float]]]:
    if plan is not None:
        yield from _look_ups(plan)
        tasks = {(task.task.key, task.task.target): task.task for task in plan.resolution.tasks}
        by_shard = {outcome.shard: outcome for outcome in outcomes}
        for outcome in by_shard.values():
            planned = [tasks.get((task.key, task.target)) for task in outcome.tasks]
            yield from _tuning(outcome, planned, compiled)
    if run is not None:
        yield from _measuring(run.cells, run.builds, usd_per_hour)


def _look_ups(plan: TuningPlan) -> Iterator[tuple[ModelOnTarget, dict[str, float]]]:
    hits = sum(isinstance(task.lookup, ExactHit) for task in plan.resolution.tasks)
    for resolved in plan.resolution.tasks:
        part = {"tasks": 1.0}
        if isinstance(resolved.lookup, TransferHit):
            part["transfers"] = 1.0
        if isinstance(resolved.lookup, ExactHit):
            part |= {"hits": 1.0, **_saved_per_hit(plan, hits)}
        yield from _split_among_models(resolved.task, part)


def _saved_per_hit(plan: TuningPlan, hits: int) -> dict[str, float]:
    """Returns what one hit saved; the plan has only the sum."""
    if plan.saved is None:
        return {}
    money = {} if plan.saved.usd is None else {"saved_usd": plan.saved.usd / hits}
    return {
        "saved_seconds": plan.saved.seconds / hits,
        "saved_trials": plan.saved_trials / hits,
        **money,
    }


def _tuning(
    outcome: TuningOutcome, tasks: Sequence[TuningTask | None], compiled: Shipped
) -> Iterator[tuple[ModelOnTarget, dict[str, float]]]:
    """Yields a shard's spending in proportion to the time of its tasks, evenly if none took any."""
    pairs = [(each, task) for each, task in zip(outcome.tasks, tasks, strict=True) if task]
    total = sum(each.seconds for each, _ in pairs)
    for each, task in pairs:
        share = each.seconds / total if total > 0 else 1 / len(pairs)
        part = {"trials": float(each.trials), "seconds": outcome.spent.seconds * share}
        if outcome.spent.usd is not None:
            part["usd"] = outcome.spent.usd * share
        yield from _split_among_models(task, part)
        yield from _gains(each, task, compiled)


def _gains(
    outcome: TaskOutcome, task: TuningTask, compiled: Shipped
) -> Iterator[tuple[ModelOnTarget, dict[str, float]]]:
    before, best = outcome.before_ms, outcome.best_ms
    if not outcome.trials or before is None or best is None or best >= before:
        return
    for use in task.uses:
        place = (use.model, task.target)
        if use.side == "head" and (place, task.key) in compiled:
            yield place, {"gained_ms": use.weight * (before - best)}


def _measuring(
    cells: Sequence[CellMeasurement],
    builds: Sequence[CellBuilds],
    usd_per_hour: Mapping[str, float | None],
) -> Iterator[tuple[ModelOnTarget, dict[str, float]]]:
    seconds = [(each.cell, each.seconds) for each in cells]
    seconds += [
        (built.cell, side.seconds) for built in builds for side in (built.base, built.head) if side
    ]
    for cell, took in seconds:
        price = usd_per_hour.get(cell.target)
        money = {} if price is None else {"gate_usd": took * price / SECONDS_PER_HOUR}
        yield (cell.model, cell.target), {"gate_seconds": took, **money}


def _split_among_models(
    task: TuningTask, part: Mapping[str, float]
) -> Iterator[tuple[ModelOnTarget, dict[str, float]]]:
    models = sorted({use.model for use in task.uses})
    for model in models:
        yield (
            (model, task.target),
            {name: amount / len(models) for name, amount in part.items()},
        )


# The entries of a history, summed up.

LET_THROUGH = frozenset({"pass", "new", "waived", "warmed"})
"""Statuses of a model that ships, or was tuned on its own branch."""


def cost_sum(name: str, entries: Iterable[HistoryEntry]) -> CostSum:
    """Returns what the runs of these entries cost and saved together. An entry without a cost
    counts for nothing."""
    counted = [(entry, entry.cost) for entry in entries if entry.cost is not None]
    costs = [_without_unshipped_gain(entry, cost) for entry, cost in counted]
    runs = runs_of(entry for entry, _ in counted)
    best = max(costs, key=lambda cost: cost.gained_ms, default=ModelCost())
    cost = msgspec.structs.replace(together(costs), gained_ms=best.gained_ms)
    return CostSum(name=name, runs=len(runs), cost=cost, gain_usd=best.usd)


def _without_unshipped_gain(entry: HistoryEntry, cost: ModelCost) -> ModelCost:
    """Returns the cost without a gain that nobody has: a model that was not let through does not
    ship."""
    return cost if entry.status in LET_THROUGH else msgspec.structs.replace(cost, gained_ms=0.0)


def runs_of(entries: Iterable[HistoryEntry]) -> set[tuple[int, str, str]]:
    """Returns keys that tell the runs of these entries apart: each leaves a line for every
    model."""
    return {(entry.at, entry.commit, entry.repository) for entry in entries}


# Tasks that ship compiled: only their tuning makes anything faster.

ShippedTask = tuple[ModelOnTarget, WorkloadKey]
Shipped = Collection[ShippedTask]


def of_builds(builds: Iterable[CellBuilds]) -> Iterator[ShippedTask]:
    """Yields the tasks of the built heads; one that ships with another runtime has none."""
    for built in builds:
        if built.head is not None and built.head.error is None:
            for task in built.head.tasks:
                yield (built.cell.model, built.cell.target), task.key


def of_elected(
    resolved: Iterable[ResolvedTask], compiled: Collection[ModelOnTarget]
) -> Iterator[ShippedTask]:
    """Yields all tasks of the heads that were elected to be compiled, if nothing was built."""
    for task in (each.task for each in resolved):
        for use in task.uses:
            where = (use.model, task.target)
            if use.side == "head" and where in compiled:
                yield where, task.key
