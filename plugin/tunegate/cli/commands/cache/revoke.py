"""`tunegate cache revoke`, as the command line knows it."""

from __future__ import annotations

from typing import Annotated

from tunegate.cli.command import Command
from tunegate.cli.option import Option
from tunegate.cli.shared_options import CacheAddress, Options
from tunegate.cli.values import date


class RevokeOptions(Options, frozen=True, kw_only=True):
    """Options of `cache revoke`: the records to revoke; several options must all fit."""

    cache: CacheAddress = CacheAddress()
    key: Annotated[str, Option("records signed by this key", "ID")] = ""
    of_repository: Annotated[str, Option("records from this repository", "NAME")] = ""
    run: Annotated[str, Option("records from this CI run", "ID")] = ""
    since: Annotated[int | None, Option("records measured from then on", "DATE", date)] = None
    until: Annotated[int | None, Option("records measured until then", "DATE", date)] = None


COMMAND = Command(
    name="cache revoke",
    summary="believe some records no longer",
    options=RevokeOptions,
    handler="tunegate.commands.cache.revoke:run",
    examples=(
        "tunegate cache revoke --key 3f9a1c",
        "tunegate cache revoke --of-repository models --since 2026-11-21 --until 2026-11-21T08:30",
    ),
)
