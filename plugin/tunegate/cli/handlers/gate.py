"""`tunegate gate`, which measures and decides; `measure` and `verdict`, its two halves; and
`confirm`."""

import dataclasses
from pathlib import Path

import msgspec

from tunegate import handover, pipeline
from tunegate.artifacts import artifact_io
from tunegate.artifacts.measurements import ShardMeasurements
from tunegate.artifacts.outcomes import TuningOutcome
from tunegate.artifacts.plans import MeasuringShard, TuningPlan
from tunegate.artifacts.verdicts import Report, Verdict
from tunegate.cli.commands.gating import ConfirmOptions, GateOptions, MeasureOptions, VerdictOptions
from tunegate.cli.handlers import run_history
from tunegate.cli.handlers.reporting import finish, write_json
from tunegate.cli.handlers.table import show_lines
from tunegate.decide import gate as decide_gate
from tunegate.errors import PASS, ConfigError
from tunegate.measure.merge_shards import merge_shards
from tunegate.plan.shards import of_shard
from tunegate.project import Project, Review, Subject, open_project
from tunegate.report.headline import STATUS_WORDS
from tunegate.review.gate_rules import with_configured
from tunegate.runtimes.requirements import require_installed
from tunegate.settings import Settings
from tunegate.system.output.directory import OutputDirectory, judged_output, opened_output
from tunegate.tune.outcomes import merge_outcomes
from tunegate.wiring import judging_rules, model_source, opened_tools, opened_upgrade_tools
from tunegate.wording import plural

# `tunegate gate`: builds both sides, measures and decides, from a plan and its outcomes.


def gate(options: GateOptions) -> int:
    """Gates the plan. A shard without an outcome costs only its tasks."""
    settings = options.settings
    project = open_project(settings)
    with judged_output(settings.out, "gate") as out:
        plan = handover.read_plan(out.path)
        project.require_plan(plan, settings)
        outcomes, review = _tuned_and_reviewed(plan, project, out)
        changes, config = review.changes, review.config
        plan = msgspec.structs.replace(plan, changes=changes)
        if not any(change.is_measured for change in changes.models):
            return finish(pipeline.nothing_to_do(config, changes, out.path), settings)
        subject = project.review_subject(review)
        source, work_seconds = model_source(subject, out.workdir), 0.0
        with review.watched.open_environments(changes, source, out.path) as upgrades:
            pythons = upgrades.pythons(changes)
            if not any(change.compiled_sides for change in changes.models):
                with opened_upgrade_tools(settings, review, out, pythons) as gate_tools:
                    report = pipeline.gate_upgrades(gate_tools, changes, upgrades)
            else:
                require_installed(config, "gate")
                with (
                    opened_tools(settings, subject, out, pythons=pythons) as tools,
                    run_history.remembered_without_end(
                        plan,
                        context=tools.context,
                        config=config,
                        repository=project.repository,
                        before=outcomes,
                    ) as began,
                ):
                    report = pipeline.gate(tools, plan, outcomes, upgrades=upgrades)
                    work_seconds = run_history.seconds_besides_tuning(began, ())
        run_history.remember(report, config, project.repository, work_seconds)
        return finish(report, settings)


def _tuned_and_reviewed(
    plan: TuningPlan, project: Project, out: OutputDirectory
) -> tuple[tuple[TuningOutcome, ...], Review]:
    """Returns what the plan's shards have found, and its changes reviewed by the configuration that
    it was made with. Removes what an earlier gate left. Raises ArtifactError."""
    outcomes = merge_outcomes(handover.read_outcomes(out.path, plan))
    review = project.review_of(plan.changes)
    handover.check_config_digest(plan, out.path, review.config)
    out.forget(since="gate")
    return outcomes, review


# `tunegate measure`: one measuring shard of a plan. Needs the plan, the tuning outcomes and the
# repository.


def measure(options: MeasureOptions) -> int:
    """Writes measurements-<shard>.json. It decides nothing: `tunegate verdict` does, for all
    shards."""
    settings = options.settings
    project = open_project(settings)
    with opened_output(settings.out, "measure") as out:
        plan = handover.read_plan(out.path)
        project.require_plan(plan, settings)
        shard = _find_shard(plan, options.shard, settings)
        outcomes, review = _tuned_and_reviewed(plan, project, out)
        out.forget_shard(shard.index)
        require_installed(review.config, "gate", {shard.target})
        subject = _limit_to_target(project.review_subject(review), shard.target)
        shard_changes = of_shard(
            msgspec.structs.replace(plan, changes=review.changes), shard
        ).changes
        source = model_source(subject, out.workdir)
        with review.watched.open_environments(shard_changes, source, out.path) as upgrades:
            pythons = upgrades.pythons(shard_changes)
            with opened_tools(settings, subject, out, pythons=pythons) as tools:
                run = pipeline.measure_shard(tools, plan, shard, outcomes, upgrades)
    if settings.as_json:
        write_json(run)
    else:
        _show(run)
    return PASS


def _find_shard(plan: TuningPlan, index: int, settings: Settings) -> MeasuringShard:
    shard = next((s for s in plan.measuring if s.index == index), None)
    if shard is None:
        numbers = ", ".join(str(s.index) for s in plan.measuring)
        what = f"shards are {numbers}" if numbers else "shards are none: no model is compared"
        message = f"--shard {index}: not in {settings.out / 'plan.json'}, whose measuring {what}."
        raise ConfigError(message)
    return shard


def _limit_to_target(subject: Subject, name: str) -> Subject:
    """Returns the subject with this target only: the runner may lack what another target needs."""
    targets = tuple(target for target in subject.config.targets if target.name == name)
    return dataclasses.replace(
        subject, config=msgspec.structs.replace(subject.config, targets=targets)
    )


def _show(measurements: ShardMeasurements) -> None:
    """Shows the launches of each model, and why there are none: the job that decides comes later,
    and whoever reads this log may repair the runner first."""
    heads = {build.cell: build.head for build in measurements.run.builds}
    lines = []
    for cell in measurements.run.cells:
        count = plural(len(cell.launches), "launch", "launches")
        head = heads.get(cell.cell)
        reasons = cell.notes or tuple(filter(None, [head.error if head else None]))
        why = f": {'; '.join(reasons)}" if reasons and not cell.launches else ""
        lines.append(f"{cell.cell.model} on {measurements.target}: {count}{why}")
    show_lines(lines)


# `tunegate verdict`: judges a plan's measuring shards. Needs no device and no compiler.


def judge(options: VerdictOptions) -> int:
    """Judges all shards. A lost shard, or one of another plan, is no pass for its models."""
    settings = options.settings
    project = open_project(settings)
    with judged_output(settings.out, "verdict") as out:
        plan = handover.read_plan(out.path)
        project.require_plan(plan, settings)
        outcomes, review = _tuned_and_reviewed(plan, project, out)
        if not any(change.is_measured for change in review.changes.models):
            nothing = pipeline.nothing_to_do(review.config, review.changes, out.path)
            return finish(nothing, settings)
        report = _judge_shards(plan, outcomes, review, settings)
        run_history.remember(report, review.config, project.repository)
        return finish(report, settings)


def _judge_shards(
    plan: TuningPlan, outcomes: tuple[TuningOutcome, ...], review: Review, settings: Settings
) -> Report:
    """Judges the merged shards. Raises ArtifactError for measurements of no shard of the plan."""
    rules = with_configured(judging_rules(settings, review), review.config, plan.changes)
    measurements = merge_shards(
        plan.measuring,
        handover.read_measurements(settings.out),
        handover.binding(plan, outcomes, rules),
    )
    machines = {shard.machine for shard in measurements.run.shards} if measurements.run else set()
    facts = decide_gate.Judged(
        changes=review.changes,
        plan=msgspec.structs.replace(plan, changes=review.changes),
        outcomes=outcomes,
        unmeasured=measurements.unmeasured,
        machine=", ".join(sorted(machines)),
        unasked=measurements.unasked,
    )
    return pipeline.decide(measurements.run, facts, rules, settings.out)


# `tunegate confirm FIRST SECOND`: a verdict that needs a second machine's agreement.


def confirm(options: ConfirmOptions) -> int:
    """Writes verdict.json to `--out`. Raises ArtifactError."""
    settings = options.settings
    advice = "Name the verdict.json of each machine."
    first, second = (artifact_io.read(Path(each), Verdict, advice) for each in options.verdicts)
    verdict = decide_gate.confirm(first, second)
    with judged_output(settings.out, "confirm") as out:
        artifact_io.write(out.path / "verdict.json", verdict)
        if settings.as_json:
            write_json(verdict)
        else:
            show_lines(
                f"{STATUS_WORDS[each.status]}: {each.model} on {each.target}: {each.reason}"
                for each in verdict.findings
            )
    return verdict.exit_code
