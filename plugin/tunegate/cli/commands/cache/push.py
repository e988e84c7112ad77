"""`tunegate cache push`, as the command line knows it."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from tunegate.cli.command import Command
from tunegate.cli.option import Argument
from tunegate.cli.shared_options import CacheAddress, Options


class PushOptions(Options, frozen=True, kw_only=True):
    """Options of `cache push`."""

    cache: CacheAddress = CacheAddress()
    directory: Annotated[
        Path | None,
        Argument("a directory store; default: what this machine could not deliver", "DIR", Path),
    ] = None


COMMAND = Command(
    name="cache push",
    summary="bring what a directory, or this machine, holds into the cache",
    options=PushOptions,
    handler="tunegate.commands.cache.copy:run_push",
    examples=(
        "tunegate cache push",
        "tunegate cache push offline-cache",
    ),
)
