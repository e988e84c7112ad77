"""The part of a report that the history keeps."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Literal

import msgspec

from tunegate.artifacts.history import MAX_TEXT, HistoryEntry, ModelCost, RunFacts
from tunegate.artifacts.measurements import MeasurementRun
from tunegate.artifacts.outcomes import TuningOutcome
from tunegate.artifacts.plans import TuningPlan
from tunegate.artifacts.verdicts import Finding, Report
from tunegate.report.history_costs import Shipped, model_costs, with_rest
from tunegate.tune.model_keys import ModelOnTarget
from tunegate_cache.format.names import group_of
from tunegate_cache.format.records import DeviceFingerprint

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
    ended: Unfinished,
) -> tuple[HistoryEntry, ...]:
    """Returns a line for each model of a run that did not finish. It shipped nothing, so tuning
    gained nothing. Its time besides tuning is shared evenly."""
    found = model_costs(plan, outcomes, None, {})
    places = ((each.path, target) for each in plan.changes.models for target in each.targets)
    every = {place: ModelCost() for place in places} | found
    costs = with_rest(every, ended.gate_seconds, ended.usd_per_hour)
    return tuple(
        msgspec.structs.replace(entry, status=ended.status, reason=_shorten(ended.reason))
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


# ---------------------------------------------------------------------------


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
    wanted = (finding.model, finding.target)
    for built in run.builds if run is not None else ():
        if (built.cell.model, built.cell.target) == wanted and built.head is not None:
            return built.head.runtime
    return ""


def _target_keys(plan: TuningPlan | None) -> dict[str, str]:
    tasks = plan.resolution.tasks if plan is not None else ()
    return {each.task.target: group_of("", each.task.key.target).target for each in tasks}


def _versions(environment: Mapping[str, str]) -> dict[str, str]:
    return dict(_found_versions(environment))


def _found_versions(environment: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    for name, value in sorted(environment.items()):
        if name.endswith(VERSION):
            yield name.removesuffix(VERSION), _shorten(value)


def _shorten(text: str) -> str:
    """Returns the text cut to the readable length."""
    return text[:MAX_TEXT]
