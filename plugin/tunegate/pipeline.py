"""The run, as a list of its stages. What branches is in the stages, what touches the world is in
the tools."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from pathlib import Path

import msgspec

from tunegate import artifact_io
from tunegate.artifacts.builds import CellBuilds, CellCandidates
from tunegate.artifacts.changes import ChangeSet, ModelPath
from tunegate.artifacts.measurements import MeasurementRun
from tunegate.artifacts.outcomes import TuningOutcome
from tunegate.artifacts.plans import Shard, TuningPlan
from tunegate.artifacts.tasks import TaskSet
from tunegate.artifacts.verdicts import Report, VerdictOrigin
from tunegate.config import Config
from tunegate.digests import digest_of
from tunegate.errors import CancelledError
from tunegate.handover import origin_of
from tunegate.measuring.score import scored
from tunegate.policy.gate_rules import GateRules
from tunegate.selection import entry_for
from tunegate.sides.earlier_bases import MAX_EARLIER_BASES, with_earlier_bases
from tunegate.sides.export_models import export_models
from tunegate.sides.far_behind import KnownStandings, new_standings
from tunegate.sides.fixed_sides import NOTHING_FIXED, Fixed, replaced, restricted
from tunegate.sides.wrong_marks import wrong_marks
from tunegate.stages.build import build
from tunegate.stages.choose_runtime import choose_runtime
from tunegate.stages.compare import compare
from tunegate.stages.extract import extract
from tunegate.stages.gate import decide_verdict
from tunegate.stages.measure import Reference, measure
from tunegate.stages.resolve import resolve
from tunegate.stages.summarize import summarize
from tunegate.stages.try_builds import plan_of_built
from tunegate.stages.tune import tune
from tunegate.tools import GateTools, Tools
from tunegate.tuning.tally import tally
from tunegate.verdict.rules_digest import rules_digest
from tunegate_cache.format.model_standing import standing_records


def run(tools: Tools, changes: ChangeSet, fixed: Fixed = NOTHING_FIXED) -> Report:
    """Runs every stage in one process. Raises CancelledError when the tuning was cancelled."""
    planned = make_plan(tools, changes)
    outcomes = [tune_shard(tools, planned, shard) for shard in planned.shards]
    return gate(tools, planned, outcomes, fixed)


def make_plan(tools: Tools, changes: ChangeSet, *, shards: int | None = None) -> TuningPlan:
    """Writes changes.json, tasks.json and plan.json."""
    out, config = tools.context.out, tools.config
    artifact_io.write(out / "changes.json", changes)
    tasks = _extracted(tools, changes)
    resolution = resolve(tasks, tools.index, config, KnownStandings(tools.index, tools.origin))
    tasks, planned = plan_of_built(tools, tasks, resolution, shards=shards)
    artifact_io.write(out / "tasks.json", tasks)
    planned = msgspec.structs.replace(planned, origin=origin_of(changes, tasks, config))
    artifact_io.write(out / "plan.json", planned)
    return planned


def _extracted(tools: Tools, changes: ChangeSet) -> TaskSet:
    """The tasks, with earlier bases where the bases are broken: they
    hold the changes that are gated."""
    tasks = extracted(tools, changes)
    if tools.source.reader is None:
        return tasks
    for _ in range(MAX_EARLIER_BASES):
        older = with_earlier_bases(tasks.changes, tasks.broken_bases, tools.source.reader)
        if older == tasks.changes:
            break
        tasks = extracted(tools, older)
    return tasks


def extracted(tools: Tools, changes: ChangeSet) -> TaskSet:
    """The tasks of these changes, with the bases that they name."""
    progress = tools.context.progress
    return extract(changes, source=tools.source, compiler=tools.compiler, progress=progress)


def publish_standings(
    tools: Tools,
    planned: TuningPlan,
    outcomes: Sequence[TuningOutcome],
    builds: Sequence[CellBuilds],
) -> None:
    """Says in the cache which models stay far behind another runtime."""
    now = int(tools.context.clock.time())
    found = new_standings(planned, outcomes, builds, tools.source.candidates)
    origin = tools.origin
    tools.index.publish(
        [
            record
            for standing in found
            for record in standing_records(
                standing,
                device=origin.device,
                toolchain=origin.toolchain,
                measured_at=now,
                source=origin.source,
            )
        ]
    )


def tune_shard(tools: Tools, planned: TuningPlan, shard: Shard) -> TuningOutcome:
    """Writes outcome-<shard>.json, also when it is cancelled: then it raises CancelledError."""
    context = tools.context
    if any(task.trials for task in shard.tasks):
        context.progress.step(f"tune: shard {shard.index} on {shard.target}")
    models = export_models(planned.changes, tools.source).files
    outcome = tune(shard, models, tuner=tools.tuner, index=tools.index, context=context)
    outcome = msgspec.structs.replace(outcome, plan=digest_of(planned))
    artifact_io.write(context.out / f"outcome-{shard.index}.json", outcome)
    if outcome.stopped == "cancelled":
        message = f"cancelled while tuning; what was finished is in {context.out} and the cache"
        raise CancelledError(message)
    return outcome


def gate(
    tools: Tools,
    planned: TuningPlan,
    outcomes: Sequence[TuningOutcome],
    fixed: Fixed = NOTHING_FIXED,
) -> Report:
    """Builds, measures and decides. Writes measurements.json and verdict.json."""
    builds = built(tools, planned, outcomes, fixed)
    publish_standings(tools, planned, outcomes, builds)
    references = _references(tools, planned.changes, builds)
    judging = _with_objectives(tools, planned.changes)
    return judge(judging, planned.changes, builds, references, planned=planned, outcomes=outcomes)


def judge(
    tools: GateTools,
    changes: ChangeSet,
    builds: Sequence[CellBuilds],
    references: Mapping[ModelPath, Reference] | None = None,
    *,
    planned: TuningPlan | None = None,
    outcomes: Sequence[TuningOutcome] = (),
) -> Report:
    """Measures what is built, and decides. Writes measurements.json and verdict.json."""
    _check_builds(tools, builds)
    out = tools.context.out
    measured = _measured(tools, builds, references or {})
    artifact_io.write(out / "measurements.json", measured)
    comparisons = compare(measured, tools.rules.gate)
    verdict = decide_verdict(comparisons, measured, changes, tally(planned, outcomes), tools.rules)
    verdict = msgspec.structs.replace(verdict, origin=_origin(tools, measured, planned))
    artifact_io.write(out / "verdict.json", verdict)
    return summarize(
        verdict,
        changes=changes,
        plan=planned,
        outcomes=outcomes,
        run=measured,
        comparisons=comparisons,
    )


def _origin(
    tools: GateTools, measured: MeasurementRun, planned: TuningPlan | None
) -> VerdictOrigin:
    return VerdictOrigin(
        plan=digest_of(planned) if planned else "",
        measurements=digest_of(measured),
        rules=rules_digest(tools.rules),
        machine=tools.context.device.machine(),
    )


def _check_builds(tools: GateTools, builds: Sequence[CellBuilds]) -> None:
    """Checks the builds before anything of them is loaded. Raises ArtifactError where
    one is no longer what was built."""
    for side in (side for built in builds for side in (built.base, built.head)):
        if side is not None and side.digest:
            tools.shipping.check(tools.context.out / side.directory, side.digest)


def _measured(
    tools: GateTools, builds: Sequence[CellBuilds], references: Mapping[ModelPath, Reference]
) -> MeasurementRun:
    """The measurements, with the user's own metric where there is one."""
    context = tools.context
    measured = measure(
        builds,
        benchmarker=tools.benchmarker,
        rules=tools.rules,
        context=context,
        references=references,
    )
    return scored(measured, out=context.out, scorer=tools.scorer, progress=context.progress)


def built(
    tools: Tools,
    planned: TuningPlan,
    outcomes: Sequence[TuningOutcome],
    fixed: Fixed = NOTHING_FIXED,
) -> tuple[CellBuilds, ...]:
    """One build a side: for each candidate of its target, then the one that ships."""
    context = tools.context
    candidates = build(
        planned, outcomes, source=tools.source, builders=tools.builders, context=context
    )
    _mark_wrong(tools, candidates)
    chosen = choose_runtime(
        restricted(candidates, fixed),
        benchmarker=tools.gate.benchmarker,
        shipping=tools.gate.shipping,
        context=context,
    )
    return replaced(chosen, fixed)


def _mark_wrong(tools: Tools, candidates: Sequence[CellCandidates]) -> None:
    """Tells the cache of schedules that compute other numbers."""
    builds = [build for each in candidates for build in (*each.base, *each.head)]
    origin, now = tools.origin, int(tools.context.clock.time())
    marks = wrong_marks(builds, origin.device, now, origin.source)
    if marks:
        tools.index.publish(marks)


def nothing_to_do(config: Config, changes: ChangeSet, out: Path) -> Report:
    """The report of a change that touches no model; no compiler is needed for it."""
    artifact_io.write(out / "changes.json", changes)
    rules = GateRules(gate=config.gate)
    verdict = decide_verdict((), None, changes, tally(None, ()), rules)
    verdict = msgspec.structs.replace(verdict, origin=VerdictOrigin(rules=rules_digest(rules)))
    artifact_io.write(out / "verdict.json", verdict)
    return summarize(verdict, changes=changes, plan=None, outcomes=(), run=None, comparisons=())


def _with_objectives(tools: Tools, changes: ChangeSet) -> GateTools:
    entries = {change.path: entry_for(tools.config, change.path) for change in changes.models}
    objectives = {
        path: entry.objective for path, entry in entries.items() if entry and entry.objective
    }
    rules = tools.gate.rules
    policies = msgspec.structs.replace(rules.policies, objectives=objectives)
    rules = msgspec.structs.replace(rules, policies=policies)
    return dataclasses.replace(tools.gate, rules=rules)


def _references(
    tools: Tools, changes: ChangeSet, builds: Sequence[CellBuilds]
) -> dict[ModelPath, Reference]:
    """The head models, for the column of the reference."""
    files = export_models(changes, tools.source).files
    return {
        built.cell.model: Reference(
            *tools.reference,
            files[built.cell.model, "head"],
            tools.threads,
        )
        for built in builds
        if (built.cell.model, "head") in files
    }
