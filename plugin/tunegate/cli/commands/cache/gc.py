"""`tunegate cache gc`, as the command line knows it."""

from __future__ import annotations

from typing import Annotated

from tunegate.cli.command import Command
from tunegate.cli.option import Option
from tunegate.cli.shared_options import CacheAddress, Options
from tunegate.cli.values import hours


class GcOptions(Options, frozen=True, kw_only=True):
    """Options of `cache gc`."""

    cache: CacheAddress = CacheAddress()
    dry_run: Annotated[bool, Option("only count")] = False
    grace_hours: Annotated[
        float, Option("how long an object must have been unreferenced", "N", hours)
    ] = 24.0


COMMAND = Command(
    name="cache gc",
    summary="delete what the last compaction holds in another place",
    options=GcOptions,
    handler="tunegate.commands.cache.gc:run",
    examples=(
        "tunegate cache gc --dry-run",
        "tunegate cache gc --zone pr/acme/models/7 --grace-hours 48",
    ),
)
