"""`tunegate experience evaluate`, as the command line knows it."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from tunegate.cli.command import Command
from tunegate.cli.option import Option
from tunegate.cli.shared_options import MEASURED_FILES, Options


class EvaluateOptions(Options, frozen=True, kw_only=True):
    """What is judged, and on what."""

    files: Annotated[tuple[Path, ...], MEASURED_FILES] = ()
    is_network: Annotated[
        bool,
        Option(
            "judge a network too, trained in each fold: needs tunegate[train], and minutes",
            flags=("--network",),
        ),
    ] = False
    trained: Annotated[
        Path | None,
        Option(
            "judge the network that experience train has written there, on tasks of FILE that "
            "share no layer and no model with its own",
            "DIR",
            Path,
            instead_of="is_network",
        ),
    ] = None


COMMAND = Command(
    name="experience evaluate",
    summary="judge what is known before the first trial, on layers and models that it has not seen",
    options=EvaluateOptions,
    handler="tunegate.commands.experience.evaluate:run",
    examples=(
        "tunegate experience evaluate",
        "tunegate experience evaluate experience.jsonl --json",
        "tunegate experience evaluate experience.jsonl --network",
        "tunegate experience evaluate experience.jsonl new.jsonl --trained .tunegate",
    ),
)
