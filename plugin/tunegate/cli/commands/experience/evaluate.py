"""`tunegate experience evaluate`, as the command line knows it."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from tunegate.cli.command import Command
from tunegate.cli.option import Argument
from tunegate.cli.shared_options import Options


class EvaluateOptions(Options, frozen=True, kw_only=True):
    """What is judged, and on what."""

    files: Annotated[
        tuple[Path, ...],
        Argument(
            "measured tasks, a line of JSON each; default: those that come with this version",
            "FILE",
            Path,
            count=0,
        ),
    ] = ()


COMMAND = Command(
    name="experience evaluate",
    summary="judge what is known before the first trial, on layers and models that it has not seen",
    options=EvaluateOptions,
    handler="tunegate.commands.experience.evaluate:run",
    examples=(
        "tunegate experience evaluate",
        "tunegate experience evaluate experience.jsonl --json",
    ),
)
