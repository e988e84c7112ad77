"""`tunegate selftest`, as the command line knows it."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from tunegate.cli.command import Command
from tunegate.cli.option import Option
from tunegate.cli.shared_options import InputShapes, Options
from tunegate.cli.values import positive


class SelftestOptions(Options, frozen=True, kw_only=True):
    """Options of `selftest`."""

    model: Annotated[
        Path | None, Option("what is measured; default: a light SqueezeNet", "FILE", Path)
    ] = None
    minutes: Annotated[float, Option("how long to measure", "N", positive)] = 10.0
    shapes: InputShapes = ()


COMMAND = Command(
    name="selftest",
    summary="find out which margin this machine can decide",
    options=SelftestOptions,
    handler="tunegate.commands.selftest:run",
    examples=(
        "tunegate selftest",
        "tunegate selftest --minutes 2 --model m.onnx --shape input=1,3,224,224",
    ),
)
