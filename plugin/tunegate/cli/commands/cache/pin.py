"""`tunegate cache pin`, as the command line knows it."""

from __future__ import annotations

from typing import Annotated

from tunegate.cli.command import Command
from tunegate.cli.option import Option
from tunegate.cli.shared_options import CacheAddress, Options


class PinOptions(Options, frozen=True, kw_only=True):
    """Options of `cache pin`."""

    cache: CacheAddress = CacheAddress()
    remove: Annotated[bool, Option("delete tunegate.lock")] = False


COMMAND = Command(
    name="cache pin",
    summary="write tunegate.lock: build with the cache as it is now",
    options=PinOptions,
    handler="tunegate.commands.cache.pin:run",
    examples=(
        "tunegate cache pin",
        "tunegate cache pin --remove",
    ),
)
