"""The run, as a list of its stages. What branches is in the stages, what touches the world is in
the tools."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from pathlib import Path

import msgspec

from tunegate import artifact_io
from tunegate.artifacts.builds import CellBuilds
from tunegate.artifacts.changes import ChangeSet, ModelPath
from tunegate.artifacts.measurements import MeasurementRun
from tunegate.artifacts.outcomes import TuningOutcome
from tunegate.artifacts.plans import Shard, TuningPlan
from tunegate.artifacts.tasks import TaskSet
from tunegate.artifacts.verdicts import Report, VerdictOrigin
from tunegate.config import Config
from tunegate.digests import digest_of
from tunegate.errors import CancelledError
from tunegate.gate.objective import inferences_needed
from tunegate.handover import origin_of
from tunegate.measuring.score import scored
from tunegate.selection import entry_for, shapes_for
from tunegate.sides.earlier_bases import MAX_EARLIER_BASES, with_earlier_bases
from tunegate.sides.export_models import export_models
from tunegate.sides.fixed_sides import NOTHING_FIXED, Fixed, replaced, restricted
from tunegate.stages.build import build
from tunegate.stages.choose_runtime import choose_runtime
from tunegate.stages.compare import compare
from tunegate.stages.extract import extract
from tunegate.stages.gate import decide
from tunegate.stages.measure import Reference, measure
from tunegate.stages.plan import plan
from tunegate.stages.resolve import resolve
from tunegate.stages.summarize import summarize
from tunegate.stages.tune import tune
from tunegate.tools import Measuring, Tools
from tunegate.tuning.tally import tally, told_as_lost
from tunegate.verdict.checks import NO_POLICIES
from tunegate.verdict.rules_digest import rules_digest


def run(tools: Tools, changes: ChangeSet, fixed: Fixed = NOTHING_FIXED) -> Report:
    """Every stage in one process. Raises CancelledError when the tuning was cancelled."""
    planned = make_plan(tools, changes)
    outcomes = [tune_shard(tools, planned, shard) for shard in planned.shards]
    return gate(tools, planned, outcomes, fixed)


def make_plan(tools: Tools, changes: ChangeSet, *, shards: int | None = None) -> TuningPlan:
    """Writes changes.json, tasks.json and plan.json."""
    artifact_io.write(tools.out / "changes.json", changes)
    tasks = _extracted(tools, changes)
    artifact_io.write(tools.out / "tasks.json", tasks)
    planned = plan(tasks, resolve(tasks, tools.index, tools.config), tools.config, shards=shards)
    origin = origin_of(changes, tasks, tools.config)
    planned = msgspec.structs.replace(planned, origin=origin)
    artifact_io.write(tools.out / "plan.json", planned)
    return planned


def _extracted(tools: Tools, changes: ChangeSet) -> TaskSet:
    """With earlier bases where the bases are broken: the tasks hold the changes that are gated."""
    tasks = _extract(tools, changes)
    if tools.reader is None:
        return tasks
    for _ in range(MAX_EARLIER_BASES):
        older = with_earlier_bases(tasks.changes, tasks.broken_bases, tools.reader)
        if older == tasks.changes:
            break
        tasks = _extract(tools, older)
    return tasks


def _extract(tools: Tools, changes: ChangeSet) -> TaskSet:
    return extract(
        changes, tools.config, tools.repository, tools.compiler, tools.workdir, tools.progress
    )


def tune_shard(tools: Tools, planned: TuningPlan, shard: Shard) -> TuningOutcome:
    """Writes outcome-<shard>.json, also when it is cancelled: then it raises CancelledError."""
    if any(task.trials for task in shard.tasks):
        tools.progress.step(f"tune: shard {shard.index} on {shard.target}")
    models = export_models(planned.changes, tools.repository, tools.workdir).files
    outcome = tune(
        shard,
        models,
        tuner=tools.tuner,
        index=tools.index,
        device=tools.device,
        clock=tools.clock,
        progress=tools.progress,
    )
    outcome = msgspec.structs.replace(outcome, plan=digest_of(planned))
    artifact_io.write(tools.out / f"outcome-{shard.index}.json", outcome)
    if outcome.stopped == "cancelled":
        message = f"cancelled while tuning; what was finished is in {tools.out} and the cache"
        raise CancelledError(message)
    return outcome


def gate(
    tools: Tools,
    planned: TuningPlan,
    outcomes: Sequence[TuningOutcome],
    fixed: Fixed = NOTHING_FIXED,
) -> Report:
    """Builds, measures and decides. Writes measurements.json and verdict.json."""
    builds = _built(tools, planned, outcomes, fixed)
    references = _references(tools, planned.changes, builds)
    measuring = _with_objectives(tools, planned.changes)
    return judge(measuring, planned.changes, builds, references, planned=planned, outcomes=outcomes)


def judge(
    measuring: Measuring,
    changes: ChangeSet,
    builds: Sequence[CellBuilds],
    references: Mapping[ModelPath, Reference] | None = None,
    *,
    planned: TuningPlan | None = None,
    outcomes: Sequence[TuningOutcome] = (),
) -> Report:
    """Measures what is built, and decides. Writes measurements.json and verdict.json."""
    _check_builds(measuring, builds)
    measured = _measured(measuring, builds, references or {})
    out, shown = measuring.out, measuring.progress
    measured = scored(measured, out=out, scorer=measuring.scorer, progress=shown)
    artifact_io.write(out / "measurements.json", measured)
    comparisons = compare(measured, measuring.gate)
    spent = tally(planned, outcomes)
    verdict = decide(comparisons, measured, changes, spent, measuring.gate, measuring.policies)
    verdict = msgspec.structs.replace(verdict, origin=_origin(measuring, measured, planned))
    artifact_io.write(out / "verdict.json", verdict)
    return summarize(
        verdict,
        changes=changes,
        plan=planned,
        outcomes=outcomes,
        run=measured,
        comparisons=comparisons,
        cache=planned.resolution.cache if planned else None,
        warnings=(*changes.notes, *_told_of(planned, outcomes), *verdict.notes),
    )


def _origin(
    measuring: Measuring, measured: MeasurementRun, planned: TuningPlan | None
) -> VerdictOrigin:
    return VerdictOrigin(
        plan=digest_of(planned) if planned else "",
        measurements=digest_of(measured),
        rules=rules_digest(measuring.gate, measuring.policies),
        machine=measuring.device.machine(),
    )


def _check_builds(measuring: Measuring, builds: Sequence[CellBuilds]) -> None:
    """Before anything of them is loaded. Raises ArtifactError where one
    is no longer what was built."""
    for side in (side for built in builds for side in (built.base, built.head)):
        if side is not None and side.digest:
            measuring.shipping.check(measuring.out / side.directory, side.digest)


def _measured(
    measuring: Measuring, builds: Sequence[CellBuilds], references: Mapping[ModelPath, Reference]
) -> MeasurementRun:
    return measure(
        builds,
        out=measuring.out,
        references=references,
        benchmarker=measuring.benchmarker,
        device=measuring.device,
        gate=measuring.gate,
        clock=measuring.clock,
        progress=measuring.progress,
        inferences={
            path: inferences_needed(wanted.percentile)
            for path, wanted in measuring.policies.objectives.items()
        },
        seed=str(measuring.seed),
    )


def _told_of(planned: TuningPlan | None, outcomes: Sequence[TuningOutcome]) -> tuple[str, ...]:
    return (*planned.notes, *told_as_lost(planned, outcomes)) if planned else ()


def _built(
    tools: Tools, planned: TuningPlan, outcomes: Sequence[TuningOutcome], fixed: Fixed
) -> tuple[CellBuilds, ...]:
    """One build a side: for each runtime that its target allows, then the one that ships."""
    candidates = build(
        planned.changes,
        planned,
        outcomes,
        tools.config,
        tools.repository,
        tools.builders,
        tools.out,
        tools.workdir,
        tools.progress,
    )
    chosen = choose_runtime(
        restricted(candidates, fixed),
        out=tools.out,
        benchmarker=tools.benchmarker,
        shipping=tools.shipping,
        progress=tools.progress,
    )
    return replaced(chosen, fixed)


def nothing_to_do(config: Config, changes: ChangeSet, out: Path) -> Report:
    """The report of a change that touches no model; no compiler is needed for it."""
    artifact_io.write(out / "changes.json", changes)
    verdict = decide((), None, changes, tally(None, ()), config.gate)
    origin = VerdictOrigin(rules=rules_digest(config.gate, NO_POLICIES))
    verdict = msgspec.structs.replace(verdict, origin=origin)
    artifact_io.write(out / "verdict.json", verdict)
    return summarize(
        verdict,
        changes=changes,
        plan=None,
        outcomes=(),
        run=None,
        comparisons=(),
        cache=None,
        warnings=changes.notes,
    )


def _with_objectives(tools: Tools, changes: ChangeSet) -> Measuring:
    entries = {change.path: entry_for(tools.config, change.path) for change in changes.models}
    objectives = {
        path: entry.objective for path, entry in entries.items() if entry and entry.objective
    }
    policies = msgspec.structs.replace(tools.policies, objectives=objectives)
    return dataclasses.replace(tools.measuring, policies=policies)


def _references(
    tools: Tools, changes: ChangeSet, builds: Sequence[CellBuilds]
) -> dict[ModelPath, Reference]:
    """The head models, for the ONNX Runtime column."""
    files = export_models(changes, tools.repository, tools.workdir).files
    return {
        built.cell.model: Reference(
            files[built.cell.model, "head"],
            shapes_for(tools.config, built.cell.model),
            tools.threads,
        )
        for built in builds
    }
