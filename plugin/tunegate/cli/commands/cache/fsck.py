"""`tunegate cache fsck`, as the command line knows it."""

from __future__ import annotations

from typing import Annotated

from tunegate.cli.command import Command
from tunegate.cli.option import Option
from tunegate.cli.shared_options import CacheAddress, Options


class FsckOptions(Options, frozen=True, kw_only=True):
    """Options of `cache fsck`."""

    cache: CacheAddress = CacheAddress()
    repair: Annotated[bool, Option("mend what can be mended")] = False


COMMAND = Command(
    name="cache fsck",
    summary="read everything and say what is broken",
    options=FsckOptions,
    handler="tunegate.commands.cache.fsck:run",
    examples=(
        "tunegate cache fsck",
        "tunegate cache fsck --repair",
    ),
)
