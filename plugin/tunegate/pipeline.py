"""The stages of a run. They branch here; the tools touch the world."""

import dataclasses
from collections.abc import Mapping, Sequence
from pathlib import Path

import msgspec

from tunegate.artifacts import artifact_io
from tunegate.artifacts.artifact_io import digest_of
from tunegate.artifacts.builds import CellBuilds
from tunegate.artifacts.changes import ChangeSet, ModelPath
from tunegate.artifacts.measurements import MeasurementRun, ShardMeasurements
from tunegate.artifacts.outcomes import TuningOutcome
from tunegate.artifacts.plans import MeasuringShard, Shard, TuningPlan
from tunegate.artifacts.tasks import TaskSet
from tunegate.artifacts.verdicts import Report, Verdict, VerdictOrigin
from tunegate.config import Config
from tunegate.decide.compare import compare
from tunegate.decide.gate import Judged, decide_verdict
from tunegate.decide.summarize import summarize
from tunegate.decide.waiving import is_enough, waiver_offer
from tunegate.errors import CancelledError, EnvironmentUnfitError
from tunegate.handover import binding, origin_of
from tunegate.measure import remembered_elections
from tunegate.measure.build_records import publish_wrong_marks
from tunegate.measure.build_sides import build
from tunegate.measure.choose_runtime import (
    NOTHING_FIXED,
    Fixed,
    choose_runtime,
    replace_builds,
    restrict_candidates,
)
from tunegate.measure.election import side_seconds
from tunegate.measure.measure_cells import Reference, measure, score_cells
from tunegate.models.export_models import export_models
from tunegate.plan.extract import Lists, extract
from tunegate.plan.far_behind import KnownStandings, publish_standings
from tunegate.plan.resolve import resolve
from tunegate.plan.run_forecast import reelected_tasks, run_forecast
from tunegate.plan.shards import compared_elsewhere, of_shard, plan_measuring
from tunegate.plan.task_lists import KnownLists
from tunegate.plan.try_builds import plan_of_built
from tunegate.review.gate_rules import GateRules, rules_digest, with_configured
from tunegate.review.pair_models import with_working_bases
from tunegate.system.clock import SystemClock
from tunegate.system.nvidia.session import loss_of
from tunegate.tools import GateTools, Tools
from tunegate.tune.outcomes import built_with_older, tally, unasked_tasks
from tunegate.tune.tune_shard import tune
from tunegate.upgrades import Upgrades
from tunegate_cache.format.records import DeviceFingerprint


def run(
    tools: Tools,
    plan: TuningPlan,
    fixed: Fixed = NOTHING_FIXED,
    upgrades: Upgrades | None = None,
) -> Report:
    """Runs every stage after the plan in one process. Raises CancelledError if the tuning was
    cancelled."""
    steps = run_forecast(plan, tools.config, tools.source.candidates, tools.origin)
    tools.context.progress.expect(steps)
    outcomes = [tune_shard(tools, plan, shard) for shard in plan.shards]
    return gate(tools, plan, outcomes, fixed, upgrades)


def make_plan(
    tools: Tools,
    changes: ChangeSet,
    *,
    shards: int | None = None,
    measure_shards: int | None = None,
) -> TuningPlan:
    """Writes changes.json, tasks.json and plan.json."""
    out, config = tools.context.out, tools.config
    artifact_io.write(out / "changes.json", changes)
    lists = KnownLists(tools, are_believed=True).list_tasks
    tasks = with_working_bases(
        changes, lambda those: extract_tasks(tools, those, lists), tools.source.reader
    )
    behind = KnownStandings(tools.index, tools.origin, tools.source.candidates)
    resolution = resolve(tasks, tools.index, config, behind)
    tasks, plan = plan_of_built(tools, tasks, resolution, shards=shards)
    artifact_io.write(out / "tasks.json", tasks)
    plan = msgspec.structs.replace(
        plan,
        origin=origin_of(changes, tasks, config),
        measuring=plan_measuring(tasks, config, shards=measure_shards),
        elections=remembered_elections.KnownElections(tools)(plan),
    )
    artifact_io.write(out / "plan.json", plan)
    return plan


def extract_tasks(tools: Tools, changes: ChangeSet, lists: Lists | None = None) -> TaskSet:
    """Returns the tasks of these changes, with the bases that they name, from the compiler or from
    `lists`."""
    progress = tools.context.progress
    lister = lists or tools.compiler.tasks
    return extract(changes, source=tools.source, lists=lister, progress=progress)


def tune_shard(tools: Tools, plan: TuningPlan, shard: Shard) -> TuningOutcome:
    """Writes outcome-<shard>.json, also if cancelled: then it raises CancelledError afterwards."""
    context = tools.context
    if any(task.trials for task in shard.tasks) or reelected_tasks(shard, tools.origin):
        context.progress.step(f"tune: shard {shard.index} on {shard.target}", "tune")
    models = export_models(plan.changes, tools.source).files
    outcome = tune(shard, models, tuner=tools.tuner, index=tools.index, context=context)
    outcome = msgspec.structs.replace(outcome, plan=digest_of(plan))
    file = context.out / f"outcome-{shard.index}.json"
    artifact_io.write(file, outcome)
    if outcome.stopped == "cancelled":
        message = (
            f"cancelled while tuning: there is no verdict. What was finished is in {file}, "
            "and in the cache where cache.mode is rw"
        )
        raise CancelledError(message)
    return outcome


def gate(
    tools: Tools,
    plan: TuningPlan,
    outcomes: Sequence[TuningOutcome],
    fixed: Fixed = NOTHING_FIXED,
    upgrades: Upgrades | None = None,
) -> Report:
    """Builds, measures and decides. Writes measurements.json."""
    builds = build_sides(tools, plan, outcomes, fixed)
    publish_standings(tools, plan, outcomes, builds)
    remembered_elections.publish_elections(tools, plan, outcomes, builds)
    changes = plan.changes
    references, judging = _references(tools, changes, builds), _judging(tools, changes)
    if upgrades is not None:
        builds = (*builds, *upgrades.builds(changes, tools.context))
    return judge(
        judging,
        changes,
        builds,
        references,
        plan=plan,
        outcomes=outcomes,
        upgrades=upgrades,
    )


def measure_shard(
    tools: Tools,
    plan: TuningPlan,
    shard: MeasuringShard,
    outcomes: Sequence[TuningOutcome],
    upgrades: Upgrades | None = None,
) -> ShardMeasurements:
    """Builds and measures the models of one shard, without a decision. Writes
    measurements-<shard>.json."""
    context, shard_plan = tools.context, of_shard(plan, shard)
    builds = build_sides(tools, shard_plan, outcomes)
    publish_standings(tools, shard_plan, outcomes, builds)
    remembered_elections.publish_elections(tools, shard_plan, outcomes, builds)
    judging = _judging(tools, plan.changes)
    references = _references(tools, shard_plan.changes, builds)
    if upgrades is not None:
        builds = (*builds, *upgrades.builds(shard_plan.changes, context))
    others = compared_elsewhere(plan, shard)
    measurements = ShardMeasurements(
        shard=shard.index,
        target=shard.target,
        bound=binding(plan, outcomes, judging.rules),
        machine=context.device.machine(),
        run=_measure_cells(judging, builds, references, other_cells=others, upgrades=upgrades),
        unasked=tuple(
            sorted(
                key
                for key, target in unasked_tasks(shard_plan, tools.origin)
                if target == shard.target
            )
        ),
    )
    artifact_io.write(context.out / f"measurements-{shard.index}.json", measurements)
    return measurements


def judge(
    tools: GateTools,
    changes: ChangeSet,
    builds: Sequence[CellBuilds],
    references: Mapping[ModelPath, Reference] | None = None,
    *,
    plan: TuningPlan | None = None,
    outcomes: Sequence[TuningOutcome] = (),
    upgrades: Upgrades | None = None,
) -> Report:
    """Measures the builds and decides. Writes measurements.json."""
    origin = tools.origin
    judgment = Judged(
        changes=changes,
        plan=plan,
        outcomes=tuple(outcomes),
        machine=tools.context.device.machine(),
        unasked=unasked_tasks(plan, origin) if plan and origin else frozenset(),
    )
    run = _measure_cells(tools, builds, references or {}, upgrades=upgrades)
    return decide(run, judgment, tools.rules, tools.context.out)


def decide(run: MeasurementRun | None, judgment: Judged, rules: GateRules, out: Path) -> Report:
    """Decides about the measurements, if there are any. Writes measurements.json."""
    if run is not None:
        artifact_io.write(out / "measurements.json", run)
    comparisons = compare(run, rules.gate) if run is not None else ()
    unasked_keys = judgment.unasked | built_with_older(run.builds if run is not None else ())
    tuning = tally(judgment.plan, judgment.outcomes, unasked_keys)

    def judge_by(rules: GateRules) -> Verdict:
        return decide_verdict(
            comparisons, run, judgment.changes, tuning, rules, missing_shards=judgment.unmeasured
        )

    verdict = judge_by(rules)
    origin = VerdictOrigin(
        plan=digest_of(judgment.plan) if judgment.plan else "",
        measurements=digest_of(run) if run is not None else "",
        rules=rules_digest(rules),
        machine=judgment.machine,
        judged_at=int(SystemClock().time()),
        gate=msgspec.to_builtins(rules.gate),
        targets={target.name: msgspec.to_builtins(target) for target in rules.targets},
    )
    verdict = msgspec.structs.replace(verdict, origin=origin)
    offer = waiver_offer(verdict, comparisons, rules)
    return summarize(
        verdict,
        judgment,
        run=run,
        comparisons=comparisons,
        offer=offer if offer is not None and is_enough(offer, rules, judge_by) else None,
    )


def _check_builds(tools: GateTools, builds: Sequence[CellBuilds]) -> None:
    """Raises ArtifactError if a build is no longer what was built."""
    for side in (side for each in builds for side in (each.base, each.head)):
        if side is not None and side.digest:
            tools.shipping.check(tools.context.out / side.directory, side.digest)


def _measure_cells(
    tools: GateTools,
    builds: Sequence[CellBuilds],
    references: Mapping[ModelPath, Reference],
    *,
    other_cells: int = 0,
    upgrades: Upgrades | None = None,
) -> MeasurementRun:
    """Returns the measurements, with the user's own metric if there is one."""
    _check_builds(tools, builds)
    context = tools.context
    run = measure(
        builds,
        benchmarker=tools.benchmarker,
        rules=tools.rules,
        context=context,
        references=references,
        other_cells=other_cells,
    )
    run = upgrades.with_culprits(run, tools) if upgrades is not None else run
    return score_cells(run, out=context.out, scorer=tools.scorer, progress=context.progress)


def build_sides(
    tools: Tools,
    plan: TuningPlan,
    outcomes: Sequence[TuningOutcome],
    fixed: Fixed = NOTHING_FIXED,
) -> tuple[CellBuilds, ...]:
    """Returns one build a side: built for each candidate of its target, then reduced to the one
    that ships."""
    context, rules = tools.context, tools.gate.rules.gate
    device = context.device.fingerprint()
    plan = remembered_elections.with_elections_after(tools, plan, outcomes)
    candidates = build(
        plan,
        outcomes,
        source=tools.source,
        builders=tools.builders,
        context=context,
        origin=tools.origin,
    )
    publish_wrong_marks(tools, candidates)
    builds = choose_runtime(
        restrict_candidates(candidates, fixed),
        benchmarker=tools.gate.benchmarker,
        shipping=tools.gate.shipping,
        context=context,
        seconds=side_seconds(rules.seconds, rules.election_share),
    )
    require_same_device(device, context.device.fingerprint(), builds)
    return replace_builds(builds, fixed)


def require_same_device(
    before: DeviceFingerprint, now: DeviceFingerprint, builds: Sequence[CellBuilds]
) -> None:
    """Raises EnvironmentUnfitError if the device was lost while models were built on it: a failed
    build is then no model's fault, and a successful one was not checked."""
    if before.uuid == now.uuid:
        return
    sides = [side for each in builds for side in (each.base, each.head) if side is not None]
    # Without the device a second try did not run, and has no error.
    errors = (side.without_picks or side.without_graphs or side.error for side in sides)
    error = next(filter(None, errors), "")
    raise EnvironmentUnfitError(loss_of(before.name, before.uuid, "while models were built", error))


def gate_upgrades(tools: GateTools, changes: ChangeSet, upgrades: Upgrades) -> Report:
    """Gates a change that touches lock files and no model. This needs no compiler."""
    artifact_io.write(tools.context.out / "changes.json", changes)
    return judge(tools, changes, upgrades.builds(changes, tools.context), upgrades=upgrades)


def nothing_to_do(config: Config, changes: ChangeSet, out: Path) -> Report:
    """Returns the report of a change that touches no model. This needs no compiler."""
    artifact_io.write(out / "changes.json", changes)
    return decide(None, Judged(changes=changes), GateRules(gate=config.gate), out)


def _judging(tools: Tools, changes: ChangeSet) -> GateTools:
    rules = with_configured(tools.gate.rules, tools.config, changes)
    return dataclasses.replace(tools.gate, rules=rules, origin=tools.origin)


def _references(
    tools: Tools, changes: ChangeSet, builds: Sequence[CellBuilds]
) -> dict[ModelPath, Reference]:
    """Returns the head models, for the reference column."""
    files = export_models(changes, tools.source).files
    return {
        each.cell.model: Reference(
            *tools.reference,
            files[each.cell.model, "head"],
            tools.threads,
        )
        for each in builds
        if (each.cell.model, "head") in files
    }
