"""`tunegate gate`: build both sides, measure, decide, from a plan and its outcomes."""

from __future__ import annotations

from tunegate import pipeline, wire
from tunegate.artifacts.outcomes import TuningOutcome
from tunegate.artifacts.plans import TuningPlan
from tunegate.commands.remembering import remember
from tunegate.commands.reporting import finish
from tunegate.edges.earlier_results import forget_results
from tunegate.project import open_project
from tunegate.settings import Settings
from tunegate.stages.export_models import versions
from tunegate.toolbox import opened_tools, prepared_out
from tunegate.tuning.merge import merge


def run(settings: Settings) -> int:
    """A shard without an outcome costs its tasks only."""
    forget_results(prepared_out(settings), since="gate")
    planned = wire.read(settings.out / "plan.json", TuningPlan)
    project = open_project(settings)
    review = project.review_of(planned.changes)
    changes, config = review.changes, review.config
    if not any(versions(change) for change in changes.models):
        return finish(pipeline.nothing_to_do(config, changes, settings.out), settings)
    found = sorted(settings.out.glob("outcome-*.json"))
    outcomes = merge(wire.read(path, TuningOutcome) for path in found)
    repository, root = project.repository, project.repository.root
    revisions, waivers = changes.revisions, review.waivers
    with opened_tools(settings, config, repository, root, revisions, waivers) as tools:
        report = pipeline.gate(tools, planned, outcomes)
    remember(report, config.cache, repository)
    return finish(report, settings)
