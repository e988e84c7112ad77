"""Declares `tunegate history` and `tunegate bisect`."""

from __future__ import annotations

from typing import Annotated, Literal, get_args

from tunegate.cli.command import Command
from tunegate.cli.option import Argument, Option, count
from tunegate.cli.shared_options import CacheAddress, InputShapes, Margin, Options

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


HISTORY = Command(
    name="history",
    summary="show the latencies of earlier runs, and what they cost, as pages or as data",
    options=HistoryOptions,
    handler="tunegate_history.history:run",
    examples=(
        "tunegate history",
        "tunegate history --runs 100 --zone main",
        "tunegate history --format csv",
    ),
)


class BisectOptions(Options, frozen=True, kw_only=True):
    """The range, the model in it, and how it is measured."""

    margin: Margin = Margin()
    cache: CacheAddress = CacheAddress()
    commits: Annotated[
        str,
        Argument("a fast revision and a slow one after it, such as v1.2.0..HEAD", "GOOD..BAD"),
    ]
    model: Annotated[
        str,
        Option(
            "the path of the model in BAD; default: the only configured one that changed", "PATH"
        ),
    ] = ""
    target: Annotated[
        str, Option("measure on this target; default: the one that got slowest", "NAME")
    ] = ""
    shapes: InputShapes = ()


BISECT = Command(
    name="bisect",
    summary="find the commit that made a model slow",
    options=BisectOptions,
    handler="tunegate_history.bisect:run",
    examples=(
        "tunegate bisect v1.2.0..HEAD",
        "tunegate bisect v1.2.0..main --model models/encoder.onnx --margin-percent 1",
    ),
)
