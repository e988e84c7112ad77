"""`tunegate experience export FILE`: the tasks of zone `exp`, each checked, as JSON lines."""

from __future__ import annotations

import msgspec

from tunegate import artifact_io
from tunegate.cache_admin import answering, open_cache_admin
from tunegate.cli.commands.experience.export import ExportExperienceOptions
from tunegate.commands.standard_output import write_json, write_line
from tunegate.cost_model.experience_lines import lines_of
from tunegate.edges.cache.experience_zone import read_tasks
from tunegate.errors import PASS
from tunegate.plurals import plural


class ExportedExperience(msgspec.Struct, frozen=True, kw_only=True):
    """`refused` are lines that no model may be fitted to."""

    schema: int = 1
    file: str
    tasks: int
    rows: int
    refused: int


def run(options: ExportExperienceOptions) -> int:
    """Raises EnvironmentUnfitError where the cache does not answer, OutputError for the file."""
    settings = options.settings
    place = open_cache_admin(settings)
    with answering(place.config):
        found = read_tasks(place.store)
    artifact_io.write_bytes(options.file, lines_of(found.tasks), "Name another file.")
    rows = sum(len(task.rows) for task in found.tasks)
    if settings.as_json:
        exported = ExportedExperience(
            file=str(options.file), tasks=len(found.tasks), rows=rows, refused=found.refused
        )
        write_json(exported)
        return PASS
    refused = f"; {plural(found.refused, 'line')} refused" if found.refused else ""
    tasks = plural(len(found.tasks), "task")
    write_line(f"{options.file}: {tasks} with {plural(rows, 'measurement')}{refused}")
    return PASS
