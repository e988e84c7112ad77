"""`tunegate demo`, as the command line knows it."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from tunegate.cli.command import Command
from tunegate.cli.option import Option
from tunegate.cli.shared_options import Options


class DemoOptions(Options, frozen=True, kw_only=True):
    """The options of `demo`: where it is played, and how long."""

    quick: Annotated[bool, Option("two modules of the network and less tuning, in 90 s")] = False

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
        "tunegate demo --directory /tmp/demo",
    ),
)
