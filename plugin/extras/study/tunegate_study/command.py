"""Declares `tunegate study` and `tunegate selftest`."""

from __future__ import annotations

import argparse
import re
from pathlib import Path
from typing import Annotated

from tunegate.cli.command import Command
from tunegate.cli.option import Argument, Option, positive
from tunegate.cli.shared_options import InputShapes, Options

StudiedLevel = tuple[str, str]
"""An axis and one of its levels."""


def shard_of_shards(text: str) -> tuple[int, int]:
    """Parses the number of a shard and how many there are, such as 2/3."""
    found = re.fullmatch(r"(\d+)/(\d+)", text)
    shard, shards = (int(number) for number in found.groups()) if found else (0, 0)
    if not 1 <= shard <= shards:
        raise argparse.ArgumentTypeError(f'"{text}" is not a shard such as 2/3')
    return shard, shards


def level(text: str) -> StudiedLevel:
    """Parses an axis and one of its levels, such as threads=2."""
    axis, equals, value = text.partition("=")
    if not (axis and equals and value):
        raise argparse.ArgumentTypeError(f'"{text}" is not AXIS=LEVEL, such as threads=2')
    return axis, value


class StudyOptions(Options, frozen=True, kw_only=True):
    """Options of `study`: the study, and which part of it."""

    file: Annotated[Path, Argument("what to vary, in YAML", "FILE", Path)]
    shard: Annotated[
        tuple[int, int] | None,
        Option("measure one of N parts, each on a runner of its own", "I/N", shard_of_shards),
    ] = None
    only: Annotated[
        tuple[StudiedLevel, ...],
        Option(
            "measure only the cells of this level; may be given for each axis",
            "AXIS=LEVEL",
            level,
            is_repeated=True,
        ),
    ] = ()
    is_report: Annotated[
        bool,
        Option(
            "measure nothing: read what shards have left in --out/study/cells, wherever they ran",
            flags=("--report",),
            instead_of="shard",
        ),
    ] = False
    is_plan: Annotated[
        bool,
        Option(
            "build and measure nothing: show the cells and what they take",
            flags=("--plan",),
            instead_of="is_report",
        ),
    ] = False


COMMAND = Command(
    name="study",
    summary="vary runtimes, precisions, layouts, tuning and threads, and tell their effects",
    options=StudyOptions,
    handler="tunegate_study.run.study:run",
    examples=(
        "tunegate study study.yaml",
        "tunegate study study.yaml --shard 1/3",
        "tunegate study study.yaml --report",
    ),
)


# Declares `tunegate selftest`.


class SelftestOptions(Options, frozen=True, kw_only=True):
    """Options of `selftest`."""

    model: Annotated[
        Path | None, Option("what is measured; default: a light SqueezeNet", "FILE", Path)
    ] = None
    minutes: Annotated[float, Option("how long to measure", "N", positive)] = 10.0
    shapes: InputShapes = ()


SELFTEST = Command(
    name="selftest",
    summary="find out which margin this machine can decide",
    options=SelftestOptions,
    handler="tunegate_study.selftest:run",
    examples=(
        "tunegate selftest",
        "tunegate selftest --minutes 2 --model m.onnx --shape input=1,3,224,224",
    ),
)
