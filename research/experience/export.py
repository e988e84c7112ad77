"""Writes the tasks of zone `exp`, each checked, as JSON lines. Run
`python -m research.experience.export FILE`."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Literal

import msgspec
import zstandard

from research.command_line import carried_out
from research.experience.lines import lines_of
from research.experience.zone_tasks import read_tasks
from tunegate.artifacts import artifact_io
from tunegate.cli.command import Command
from tunegate.cli.handlers.cache_admin import answering, open_cache_admin
from tunegate.cli.handlers.reporting import write_json, write_line
from tunegate.cli.option import Argument, Option
from tunegate.cli.shared_options import CacheAddress, Options
from tunegate.errors import PASS
from tunegate.wording import plural

_LEVEL = 19
"""Of compression: a file is packed once, and read by each search."""


class ExportExperienceOptions(Options, frozen=True, kw_only=True):
    """The file that the lines go to."""

    cache: CacheAddress = CacheAddress()
    kind: Annotated[
        Literal["all", "llvm", "cuda"], Option("only tasks of CPUs (llvm), or of GPUs (cuda)")
    ] = "all"
    file: Annotated[
        Path,
        Argument(
            "where they go; what is there is replaced. A name that ends with .zst is packed, as "
            "the search reads it",
            "FILE",
            Path,
        ),
    ]


COMMAND = Command(
    name="research.experience.export",
    summary="write what the cache has of measured tasks into one file of JSON lines",
    options=ExportExperienceOptions,
    handler="research.experience.export:run",
    examples=(
        "python -m research.experience.export experience.jsonl",
        "python -m research.experience.export --kind cuda cuda.jsonl.zst",
    ),
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
    wanted = (False, True) if options.kind == "all" else (options.kind == "cuda",)
    tasks = [task for task in found.tasks if task.is_of_gpu in wanted]
    lines = lines_of(tasks)
    if options.file.suffix == ".zst":
        lines = zstandard.ZstdCompressor(level=_LEVEL).compress(lines)
    artifact_io.write_bytes(options.file, lines, "Name another file.")
    rows = sum(len(task.rows) for task in tasks)
    if settings.as_json:
        exported = ExportedExperience(
            file=str(options.file), tasks=len(tasks), rows=rows, refused=found.refused
        )
        write_json(exported)
        return PASS
    refused = f"; {plural(found.refused, 'line')} refused" if found.refused else ""
    write_line(
        f"{options.file}: {plural(len(tasks), 'task')} with {plural(rows, 'measurement')}{refused}"
    )
    return PASS


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
