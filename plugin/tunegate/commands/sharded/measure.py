"""`tunegate measure`: one measuring shard of a plan. Needs the plan, the outcomes of tuning and the
repository."""

from __future__ import annotations

import dataclasses

import msgspec

from tunegate import pipeline
from tunegate.artifacts.plans import MeasuringShard, TuningPlan
from tunegate.artifacts.shard_measurements import ShardMeasurements
from tunegate.cli.commands.measure import MeasureOptions
from tunegate.commands.standard_output import write_json
from tunegate.commands.table import show_lines
from tunegate.edges.output.directory import opened_output
from tunegate.errors import PASS, ConfigError
from tunegate.handover import check_config_digest, read_outcomes, read_plan
from tunegate.measuring.shard_of_plan import of_shard
from tunegate.plurals import plural
from tunegate.project import Subject, open_project
from tunegate.runtimes.requirements import require_installed
from tunegate.settings import Settings
from tunegate.tuning.merge import merge_outcomes
from tunegate.wiring import model_source, opened_tools


def run(options: MeasureOptions) -> int:
    """Writes measurements-<shard>.json. It says nothing of pass or fail: `tunegate verdict` does,
    of all shards together."""
    settings = options.settings
    project = open_project(settings)
    with opened_output(settings.out, "measure") as out:
        planned = read_plan(out.path)
        project.require_plan(planned, settings)
        chosen = _chosen(planned, options.shard, settings)
        outcomes = merge_outcomes(read_outcomes(out.path, planned))
        review = project.review_of(planned.changes)
        check_config_digest(planned, out.path, review.config)
        out.forget(since="gate")
        out.forget_shard(chosen.index)
        require_installed(review.config, "gate", {chosen.target})
        subject = _of_target(project.reviewed(review), chosen.target)
        mine = of_shard(msgspec.structs.replace(planned, changes=review.changes), chosen).changes
        source = model_source(subject, out.workdir)
        with review.watched.opened(mine, source, out.path) as upgrades:
            pythons = upgrades.pythons(mine)
            with opened_tools(settings, subject, out, pythons=pythons) as tools:
                found = pipeline.measure_shard(tools, planned, chosen, outcomes, upgrades)
    if settings.as_json:
        write_json(found)
    else:
        _show(found)
    return PASS


def _chosen(planned: TuningPlan, shard: int, settings: Settings) -> MeasuringShard:
    chosen = next((s for s in planned.measuring if s.index == shard), None)
    if chosen is None:
        known = ", ".join(str(s.index) for s in planned.measuring)
        what = f"shards are {known}" if known else "shards are none: no model is compared"
        message = f"--shard {shard}: not in {settings.out / 'plan.json'}, whose measuring {what}."
        raise ConfigError(message)
    return chosen


def _of_target(subject: Subject, name: str) -> Subject:
    """The runner has what this target needs, and perhaps nothing that another one does."""
    targets = tuple(target for target in subject.config.targets if target.name == name)
    return dataclasses.replace(
        subject, config=msgspec.structs.replace(subject.config, targets=targets)
    )


def _show(found: ShardMeasurements) -> None:
    launches = {each.cell.model: len(each.launches) for each in found.run.cells}
    show_lines(
        f"{model} on {found.target}: {plural(count, 'launch', 'launches')}"
        for model, count in launches.items()
    )
