"""`tunegate cache promote`, as the command line knows it."""

from __future__ import annotations

from typing import Annotated

from tunegate.cli.command import Command
from tunegate.cli.option import Option
from tunegate.cli.shared_options import CacheAddress, Options


class PromoteOptions(Options, frozen=True, kw_only=True):
    """Options of `cache promote`."""

    cache: CacheAddress = CacheAddress()
    from_zone: Annotated[str, Option("such as pr/<owner>/<repository>/7", "NAME")]


COMMAND = Command(
    name="cache promote",
    summary="take over a zone's records, after measuring them again",
    options=PromoteOptions,
    handler="tunegate.commands.cache.promote:run",
    examples=("tunegate cache promote --from-zone pr/acme/models/7",),
)
