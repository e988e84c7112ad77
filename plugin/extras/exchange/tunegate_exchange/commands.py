"""Declares `tunegate cache export` and `tunegate cache import`."""

from pathlib import Path
from typing import Annotated

from tunegate.cli.command import Command
from tunegate.cli.option import Argument
from tunegate.cli.shared_options import CacheAddress, Options


class ExportOptions(Options, frozen=True, kw_only=True):
    """Options of `cache export`: where the database goes."""

    cache: CacheAddress = CacheAddress()
    directory: Annotated[Path, Argument("where it goes", "DIR", Path)]


EXPORT = Command(
    name="cache export",
    summary="write a stock MetaSchedule database for the models at HEAD",
    options=ExportOptions,
    handler="tunegate_exchange.export:run",
    examples=("tunegate cache export database",),
)


class ImportOptions(Options, frozen=True, kw_only=True):
    """Options of `cache import`: where the database is."""

    cache: CacheAddress = CacheAddress()
    directory: Annotated[Path, Argument("the database", "DIR", Path)]


IMPORT = Command(
    name="cache import",
    summary="take over what a stock MetaSchedule database knows, after measuring it again",
    options=ImportOptions,
    handler="tunegate_exchange.import_records:run",
    examples=("tunegate cache import database/cpu",),
)
