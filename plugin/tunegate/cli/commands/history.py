"""`tunegate history`, as the command line knows it."""

from __future__ import annotations

from typing import Annotated, Literal, get_args

from tunegate.cli.command import Command
from tunegate.cli.option import Option
from tunegate.cli.shared_options import CacheAddress, Options
from tunegate.cli.values import count

HistoryFormat = Literal["html", "csv", "jsonl"]


class HistoryOptions(Options, frozen=True, kw_only=True):
    """Options of `history`."""

    cache: CacheAddress = CacheAddress()
    runs: Annotated[int, Option("how many of the latest runs", "N", count)] = 500
    format: Annotated[
        HistoryFormat,
        Option(
            "html: history.html and costs.html; csv: history.csv; jsonl: history.jsonl",
            choices=get_args(HistoryFormat),
        ),
    ] = "html"


COMMAND = Command(
    name="history",
    summary="show the latencies of earlier runs, and what they cost, as pages or as data",
    options=HistoryOptions,
    handler="tunegate.commands.history:run",
    examples=(
        "tunegate history",
        "tunegate history --runs 100 --zone main",
        "tunegate history --format csv",
    ),
)
