"""`tunegate demo`, as the command line knows it."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from tunegate.cli.command import Command
from tunegate.cli.option import Option
from tunegate.cli.shared_options import Options
from tunegate.cli.values import percentage


class DemoOptions(Options, frozen=True, kw_only=True):
    """The options of `demo`: where it is played, how long, and how exact."""

    quick: Annotated[bool, Option("one module of the network and less tuning, in 90 s")] = False

    max_error: Annotated[
        float | None,
        Option(
            "an error that its model may have: bfloat16 and others are elected from, too",
            "PERCENT",
            percentage,
        ),
    ] = None

    directory: Annotated[Path, Option("where the repository of the demo is made", "DIR", Path)] = (
        Path(".demo")
    )


COMMAND = Command(
    name="demo",
    summary="play three pull requests in a throw-away repository",
    options=DemoOptions,
    handler="tunegate.commands.demo:run_demo",
    examples=(
        "tunegate demo",
        "tunegate demo --quick",
        "tunegate demo --quick --max-error 5",
        "tunegate demo --directory /tmp/demo",
    ),
)
