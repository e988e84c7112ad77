"""`tunegate cache import`, as the command line knows it."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from tunegate.cli.command import Command
from tunegate.cli.option import Argument
from tunegate.cli.shared_options import CacheAddress, Options


class ImportOptions(Options, frozen=True, kw_only=True):
    """The options of `cache import`: where the database is."""

    cache: CacheAddress = CacheAddress()
    directory: Annotated[Path, Argument("the database", "DIR", Path)]


COMMAND = Command(
    name="cache import",
    summary="take over what a stock MetaSchedule database knows, after measuring it again",
    options=ImportOptions,
    handler="tunegate.commands.cache.import_records:run",
    examples=("tunegate cache import database/cpu",),
)
