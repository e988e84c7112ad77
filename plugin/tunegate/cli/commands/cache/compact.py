"""`tunegate cache compact`, as the command line knows it."""

from __future__ import annotations

from tunegate.cli.command import Command
from tunegate.cli.shared_options import CacheAddress, Options


class CompactOptions(Options, frozen=True, kw_only=True):
    """The zones that are compacted."""

    cache: CacheAddress = CacheAddress()


COMMAND = Command(
    name="cache compact",
    summary="gather segments so that look-ups need few requests",
    options=CompactOptions,
    handler="tunegate.commands.cache.compact:run",
    examples=("tunegate cache compact --zone main",),
)
