"""`tunegate history`, as the command line knows it."""

from __future__ import annotations

from typing import Annotated

from tunegate.cli.command import Command
from tunegate.cli.option import Option
from tunegate.cli.shared_options import CacheAddress, Options
from tunegate.cli.values import count


class HistoryOptions(Options, frozen=True, kw_only=True):
    """Whose history, and how much of it."""

    cache: CacheAddress = CacheAddress()
    runs: Annotated[int, Option("how many of the latest runs", "N", count)] = 500


COMMAND = Command(
    name="history",
    summary="show the latencies of earlier runs as a page",
    options=HistoryOptions,
    handler="tunegate.commands.history:run",
    examples=(
        "tunegate history",
        "tunegate history --runs 100 --zone main",
    ),
)
