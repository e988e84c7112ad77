"""`tunegate detect`, `plan` and `tune`: the stages before the gate, each as a command."""

import json
import os
from collections.abc import Mapping
from pathlib import Path

import msgspec

from tunegate import pipeline
from tunegate.artifacts import artifact_io
from tunegate.artifacts.changes import ChangeSet
from tunegate.artifacts.plans import Shard, TuningPlan
from tunegate.cli.commands.gating import DetectOptions, PlanOptions, TuneOptions
from tunegate.cli.handlers.reporting import write_json, write_line
from tunegate.errors import PASS, ConfigError
from tunegate.handover import check_config_digest, read_plan
from tunegate.plan.resolve import refresh_shard
from tunegate.plan.shards import MatrixLeg, matrix, measure_matrix
from tunegate.project import Project, open_project
from tunegate.report.escape import visible
from tunegate.report.headline import described_change, uncovered_line
from tunegate.runtimes.requirements import require_installed
from tunegate.settings import Settings
from tunegate.system.output.directory import opened_output
from tunegate.wiring import opened_tools
from tunegate.wording import plural

# `tunegate detect`: the models that a change touches.


def detect(options: DetectOptions) -> int:
    """Writes changes.json, unless it runs as the hook of a push."""
    project = open_project(options.settings)
    if options.pushed:
        default = project.repository.default_branch_name()
        settings = pushed_revisions(options.settings, os.environ, default)
        changes = project.review(settings).changes
    else:
        changes = _write_changes(project, options.settings)
    if options.settings.as_json:
        write_json(changes)
    else:
        _show_changes(changes)
    return PASS


def _write_changes(project: Project, settings: Settings) -> ChangeSet:
    with opened_output(settings.out, "detect") as out:
        changes = project.review(settings).changes
        artifact_io.write(out.path / "changes.json", changes)
    return changes


def _show_changes(changes: ChangeSet) -> None:
    revisions = changes.revisions
    base = revisions.base[:12] if revisions.base else "nothing"
    write_line(f"{revisions.head[:12]} against {base} ({visible(revisions.reason)})")
    for policy_change in changes.policy_changes:
        write_line(f"  {described_change(policy_change, visible)}")
    for change in changes.models:
        kind = f"{change.kind}, {change.change}" if change.change else change.kind
        write_line(f"  {visible(change.path)}: {kind}: {visible(change.reason)}")
    write_line(f"  {len(changes.unchanged)} unchanged")
    line = uncovered_line(changes.uncovered, visible)
    if line:
        write_line(f"  {line}")
    for note in changes.notes:
        write_line(f"  note: {visible(note)}")


# The revisions of a push, as pre-commit passes them to its hooks. Pure.


def pushed_revisions(
    settings: Settings, variables: Mapping[str, str], default_branch: str
) -> Settings:
    """Returns the settings with the pushed commit as their head. A push to the default branch is
    compared with what the remote has there, any other with where its branch left that one: a second
    push does not hide the first. Run by hand, it compares the usual revisions."""
    head = settings.head or variables.get("PRE_COMMIT_TO_REF")
    if not head:
        return settings
    branch = variables.get("PRE_COMMIT_REMOTE_BRANCH", "").removeprefix("refs/heads/")
    before = variables.get("PRE_COMMIT_FROM_REF") if branch in {"", default_branch} else None
    return msgspec.structs.replace(settings, base=settings.base or before, head=head)


# `tunegate plan`: what to tune where, and what it will cost.


def plan(options: PlanOptions) -> int:
    """Writes changes.json, tasks.json, plan.json, and for the CI's fan-out matrix.json (tuning) and
    measure-matrix.json (the gate).

    Shards run side by side, so without `--shards` there is one per target.
    """
    settings = options.settings
    project = open_project(settings)
    with opened_output(settings.out, "plan") as out:
        review = project.review(settings)
        out.forget(since="plan")
        changes, config = review.changes, review.config
        if any(change.compiled_sides for change in changes.models):
            require_installed(config, "plan")
        shards = options.shards or len(config.targets)
        with opened_tools(settings, project.review_subject(review), out) as tools:
            tuning_plan = pipeline.make_plan(
                tools, changes, shards=shards, measure_shards=options.measure_shards
            )
            _write_matrix(out.path / "matrix.json", matrix(tuning_plan))
            _write_matrix(out.path / "measure-matrix.json", measure_matrix(tuning_plan))
    if settings.as_json:
        write_json(tuning_plan)
    else:
        show_plan(tuning_plan)
    return PASS


def _write_matrix(path: Path, legs: dict[str, list[MatrixLeg]]) -> None:
    artifact_io.write_text(path, json.dumps(legs) + "\n")


def show_plan(plan: TuningPlan) -> None:
    """Shows the plan and its reasons, also why the cache gave no answers."""
    usd = "" if plan.estimate.usd is None else f", {plan.estimate.usd:.2f} USD"
    legs = len(matrix(plan)["include"])
    tasks = len(plan.resolution.tasks)
    write_line(
        f"{plural(tasks, 'task')}, {plural(legs, 'shard')} to tune, "
        f"about {plan.estimate.seconds:.0f} s{usd}"
    )
    for shard in plan.shards:
        trials = sum(task.trials for task in shard.tasks)
        write_line(
            f"  shard {shard.index} on {shard.target}: {plural(len(shard.tasks), 'task')}, "
            f"{plural(trials, 'trial')}"
        )
    for each in plan.measuring:
        write_line(
            f"  measuring shard {each.index} on {each.target}: "
            f"{plural(len(each.models), 'model')}, about {each.predicted_seconds:.0f} s"
        )
    for note in (*plan.changes.notes, *plan.notes, *plan.resolution.cache.notes):
        write_line(f"  note: {visible(note)}")


# `tunegate tune`: one shard of a plan. Needs only the plan, the repository and the cache.


def tune(options: TuneOptions) -> int:
    """Writes outcome-<shard>.json. After a kill it resumes from what the cache has by now."""
    settings = options.settings
    project = open_project(settings)
    with opened_output(settings.out, "tune") as out:
        plan = read_plan(out.path)
        project.require_plan(plan, settings)
        shard = _find_shard(plan, options.shard, settings)
        review = project.review_of(plan.changes)
        check_config_digest(plan, out.path, review.config)
        require_installed(review.config, "tune", {shard.target})
        with opened_tools(settings, project.review_subject(review), out) as tools:
            outcome = pipeline.tune_shard(tools, plan, refresh_shard(shard, tools.index))
    if settings.as_json:
        write_json(outcome)
    return PASS


def _find_shard(plan: TuningPlan, index: int, settings: Settings) -> Shard:
    shard = next((s for s in plan.shards if s.index == index), None)
    if shard is None:
        numbers = ", ".join(str(s.index) for s in plan.shards)
        what = f"which has {numbers}" if numbers else "which has none: nothing is left to tune"
        message = f"--shard {index}: not in {settings.out / 'plan.json'}, {what}."
        raise ConfigError(message)
    return shard
