"""`tunegate gate`: build both sides, measure, decide, from a plan and its outcomes."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from tunegate import artifact_io, pipeline
from tunegate.artifacts.outcomes import TuningOutcome
from tunegate.artifacts.plans import TuningPlan
from tunegate.commands.remembering import remember
from tunegate.commands.reporting import finish
from tunegate.edges.output_directory import opened_output
from tunegate.edges.requirements import require_installed
from tunegate.project import open_project
from tunegate.settings import Settings
from tunegate.stages.export_models import versions
from tunegate.toolbox import opened_tools
from tunegate.tuning.merge import merge


def run(settings: Settings) -> int:
    """A shard without an outcome costs its tasks only."""
    project = open_project(settings)
    with opened_output(settings.out, "gate") as out:
        planned = artifact_io.read(out.path / "plan.json", TuningPlan)
        outcomes = _outcomes(out.path)
        review = project.review_of(planned.changes)
        out.forget(since="gate")
        changes, config = review.changes, review.config
        if not any(versions(change) for change in changes.models):
            return finish(pipeline.nothing_to_do(config, changes, out.path), settings)
        require_installed(config, "gate")
        parts = (config, project.repository, project.repository.root, changes.revisions)
        with opened_tools(settings, *parts, out, review) as tools:
            report = pipeline.gate(tools, planned, outcomes)
        remember(report, config.cache, project.repository)
        return finish(report, settings)


def _outcomes(out: Path) -> Sequence[TuningOutcome]:
    found = sorted(out.glob("outcome-*.json"))
    return merge(artifact_io.read(path, TuningOutcome) for path in found)
