"""`tunegate cache pull`, as the command line knows it."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from tunegate.cli.command import Command
from tunegate.cli.option import Argument
from tunegate.cli.shared_options import CacheAddress, Options


class PullOptions(Options, frozen=True, kw_only=True):
    """The options of `cache pull`: where the copy goes."""

    cache: CacheAddress = CacheAddress()
    directory: Annotated[Path, Argument("where it goes", "DIR", Path)]


COMMAND = Command(
    name="cache pull",
    summary="copy what a run reads into a directory",
    options=PullOptions,
    handler="tunegate.commands.cache.copy:run_pull",
    examples=("tunegate cache pull offline-cache",),
)
