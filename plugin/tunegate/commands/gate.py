"""`tunegate gate`: build both sides, measure, decide, from a plan and its outcomes."""

from __future__ import annotations

import msgspec

from tunegate import pipeline
from tunegate.cli.commands.gate import GateOptions
from tunegate.commands.remembering import (
    remember,
    remembered_without_end,
    seconds_besides_tuning,
)
from tunegate.commands.reporting import finish
from tunegate.edges.output.directory import opened_output
from tunegate.handover import check_config_digest, read_outcomes, read_plan
from tunegate.project import open_project
from tunegate.runtimes.requirements import require_installed
from tunegate.sides.export_models import is_measured, versions
from tunegate.tuning.merge import merge_outcomes
from tunegate.wiring import model_source, opened_tools, opened_upgrade_tools


def run(options: GateOptions) -> int:
    """A shard without an outcome costs its tasks only."""
    settings = options.settings
    project = open_project(settings)
    with opened_output(settings.out, "gate") as out:
        planned = read_plan(out.path)
        project.require_plan(planned, settings)
        outcomes = merge_outcomes(read_outcomes(out.path, planned))
        review = project.review_of(planned.changes)
        check_config_digest(planned, out.path, review.config)
        out.forget(since="gate")
        changes, config = review.changes, review.config
        planned = msgspec.structs.replace(planned, changes=changes)
        if not any(map(is_measured, changes.models)):
            return finish(pipeline.nothing_to_do(config, changes, out.path), settings)
        subject = project.reviewed(review)
        source, work_seconds = model_source(subject, out.workdir), 0.0
        with review.watched.opened(changes, source, out.path) as upgrades:
            pythons = upgrades.pythons(changes)
            if not any(versions(change) for change in changes.models):
                with opened_upgrade_tools(settings, review, out, pythons) as gate_tools:
                    report = pipeline.gate_upgrades(gate_tools, changes, upgrades)
            else:
                require_installed(config, "gate")
                with (
                    opened_tools(settings, subject, out, pythons=pythons) as tools,
                    remembered_without_end(
                        planned,
                        context=tools.context,
                        config=config,
                        repository=project.repository,
                        before=outcomes,
                    ) as began,
                ):
                    report = pipeline.gate(tools, planned, outcomes, upgrades=upgrades)
                    work_seconds = seconds_besides_tuning(began, ())
        remember(report, config, project.repository, work_seconds)
        return finish(report, settings)
