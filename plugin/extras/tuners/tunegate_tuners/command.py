"""Declares `tunegate lent-gc`."""

from __future__ import annotations

from typing import Annotated

from tunegate.cli.command import Command
from tunegate.cli.option import Option, positive
from tunegate.cli.shared_options import CacheAddress, Options


class LentGcOptions(Options, frozen=True, kw_only=True):
    """Options of `lent-gc`: what is kept of other tuners' objects."""

    cache: CacheAddress = CacheAddress()
    days: Annotated[float, Option("keep nothing that is older", "N", positive)] = 90.0
    max_gb: Annotated[
        float, Option("delete the oldest until no more is left in a zone", "N", positive)
    ] = 10.0
    dry_run: Annotated[bool, Option("only count")] = False


COMMAND = Command(
    name="lent-gc",
    summary="delete what other tuners no longer need in the cache",
    options=LentGcOptions,
    handler="tunegate_tuners.lent_gc:run",
    examples=(
        "tunegate lent-gc --dry-run",
        "tunegate lent-gc --zone main --days 30 --max-gb 2",
    ),
)
