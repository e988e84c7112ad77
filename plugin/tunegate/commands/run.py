"""`tunegate run`: every stage in one process."""

from __future__ import annotations

from tunegate import pipeline
from tunegate.commands.remembering import remember
from tunegate.commands.reporting import finish
from tunegate.edges.earlier_results import forget_results
from tunegate.selection import judged_as
from tunegate.settings import Settings
from tunegate.stages.export_models import versions
from tunegate.toolbox import open_workplace, opened_tools, prepared_out


def run(settings: Settings) -> int:
    """Nothing of the compiler is started for a change that touches no model."""
    out = prepared_out(settings)
    forget_results(out, since="plan")
    place = open_workplace(settings)
    changes = place.changes(settings)
    config = judged_as(place.config, changes.revisions)
    if not any(versions(change) for change in changes.models):
        return finish(pipeline.nothing_to_do(config, changes, out), settings)
    root = place.repository.root
    with opened_tools(settings, config, place.repository, root, changes.revisions) as tools:
        report = pipeline.run(tools, changes)
    remember(report, place)
    return finish(report, settings)
