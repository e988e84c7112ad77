"""`tunegate cache export`, as the command line knows it."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from tunegate.cli.command import Command
from tunegate.cli.option import Argument
from tunegate.cli.shared_options import CacheAddress, Options


class ExportOptions(Options, frozen=True, kw_only=True):
    """The options of `cache export`: where the database goes."""

    cache: CacheAddress = CacheAddress()
    directory: Annotated[Path, Argument("where it goes", "DIR", Path)]


COMMAND = Command(
    name="cache export",
    summary="write a stock MetaSchedule database for the models at HEAD",
    options=ExportOptions,
    handler="tunegate.commands.cache.export:run",
    examples=("tunegate cache export database",),
)
