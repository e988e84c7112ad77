"""`tunegate experience train`, as the command line knows it."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from tunegate.cli.command import Command
from tunegate.cli.shared_options import MEASURED_FILES, Options


class TrainOptions(Options, frozen=True, kw_only=True):
    """What is learned from."""

    files: Annotated[tuple[Path, ...], MEASURED_FILES] = ()


COMMAND = Command(
    name="experience train",
    summary="meta-train a network that ranks candidates, to compare it with the trees",
    options=TrainOptions,
    handler="tunegate.commands.experience.train:run",
    examples=(
        "tunegate experience train experience.jsonl",
        "tunegate experience train experience.jsonl --out trained",
    ),
)
