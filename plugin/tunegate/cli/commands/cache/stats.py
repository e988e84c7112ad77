"""`tunegate cache stats`, as the command line knows it."""

from __future__ import annotations

from tunegate.cli.command import Command
from tunegate.cli.shared_options import CacheAddress, Options


class StatsOptions(Options, frozen=True, kw_only=True):
    """The cache that is counted."""

    cache: CacheAddress = CacheAddress()


COMMAND = Command(
    name="cache stats",
    summary="count what the cache holds",
    options=StatsOptions,
    handler="tunegate.commands.cache.stats:run",
    examples=(
        "tunegate cache stats",
        "tunegate cache stats --json",
    ),
)
