"""`tunegate run`: every stage in one process."""

from __future__ import annotations

from tunegate import pipeline
from tunegate.cli.commands.run import RunOptions
from tunegate.commands.remembering import remember
from tunegate.commands.reporting import finish
from tunegate.edges.output.directory import opened_output
from tunegate.project import open_project
from tunegate.runtimes.requirements import require_installed
from tunegate.sides.export_models import versions
from tunegate.wiring import opened_tools


def run(options: RunOptions) -> int:
    """Nothing of the compiler is started for a change that touches no model."""
    settings = options.settings
    project = open_project(settings)
    with opened_output(settings.out, "run") as out:
        review = project.review(settings)
        out.forget(since="plan")
        changes, config = review.changes, review.config
        if not any(versions(change) for change in changes.models):
            return finish(pipeline.nothing_to_do(config, changes, out.path), settings)
        require_installed(config, "run")
        with opened_tools(settings, project.reviewed(review), out) as tools:
            report = pipeline.run(tools, changes)
        remember(report, config.cache, project.repository)
        return finish(report, settings)
