"""Writes the tasks of zone `exp`, each checked, as JSON lines. Run
`python -m research.experience.export FILE`."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import msgspec

from research.command_line import carried_out
from research.experience.lines import lines_of
from research.experience.zone_tasks import read_tasks
from tunegate.artifacts import artifact_io
from tunegate.cli.command import Command
from tunegate.cli.handlers.cache_admin import answering, open_cache_admin
from tunegate.cli.handlers.reporting import write_json, write_line
from tunegate.cli.option import Argument
from tunegate.cli.shared_options import CacheAddress, Options
from tunegate.errors import PASS
from tunegate.wording import plural


class ExportExperienceOptions(Options, frozen=True, kw_only=True):
    """The file that the lines go to."""

    cache: CacheAddress = CacheAddress()
    file: Annotated[Path, Argument("where they go; what is there is replaced", "FILE", Path)]


COMMAND = Command(
    name="research.experience.export",
    summary="write what the cache has of measured tasks into one file of JSON lines",
    options=ExportExperienceOptions,
    handler="research.experience.export:run",
    examples=("python -m research.experience.export experience.jsonl",),
)


def main(arguments: Sequence[str]) -> int:
    return carried_out(COMMAND, run, arguments)


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


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
