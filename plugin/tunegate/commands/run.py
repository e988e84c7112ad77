"""`tunegate run`: every stage in one process."""

from __future__ import annotations

from tunegate import pipeline
from tunegate.commands.remembering import remember
from tunegate.commands.reporting import finish
from tunegate.edges.earlier_results import forget_results
from tunegate.project import open_project
from tunegate.settings import Settings
from tunegate.stages.export_models import versions
from tunegate.toolbox import opened_tools, prepared_out


def run(settings: Settings) -> int:
    """Nothing of the compiler is started for a change that touches no model."""
    out = prepared_out(settings)
    forget_results(out, since="plan")
    project = open_project(settings)
    review = project.review(settings)
    changes, config = review.changes, review.config
    if not any(versions(change) for change in changes.models):
        return finish(pipeline.nothing_to_do(config, changes, out), settings)
    repository, root = project.repository, project.repository.root
    revisions, waivers = changes.revisions, review.waivers
    with opened_tools(settings, config, repository, root, revisions, waivers) as tools:
        report = pipeline.run(tools, changes)
    remember(report, config.cache, repository)
    return finish(report, settings)
