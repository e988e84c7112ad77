"""`tunegate experience export`, as the command line knows it."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from tunegate.cli.command import Command
from tunegate.cli.option import Argument
from tunegate.cli.shared_options import CacheAddress, Options


class ExportExperienceOptions(Options, frozen=True, kw_only=True):
    """The file that the lines go to."""

    cache: CacheAddress = CacheAddress()
    file: Annotated[Path, Argument("where they go; what is there is replaced", "FILE", Path)]


COMMAND = Command(
    name="experience export",
    summary="write what the cache has of measured tasks into one file of JSON lines",
    options=ExportExperienceOptions,
    handler="tunegate.commands.experience.export:run",
    examples=("tunegate experience export experience.jsonl",),
)
