"""`tunegate experience train`, as the command line knows it."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from tunegate.cli.command import Command
from tunegate.cli.option import Option
from tunegate.cli.shared_options import MEASURED_FILES, Options


class TrainOptions(Options, frozen=True, kw_only=True):
    """What is learned from."""

    files: Annotated[tuple[Path, ...], MEASURED_FILES] = ()
    is_trees: Annotated[
        bool,
        Option(
            "teach the trees of the search these tasks too, judge them on layers left out, and "
            "write a file for cache.prior; needs no training library",
            flags=("--trees",),
        ),
    ] = False


COMMAND = Command(
    name="experience train",
    summary="meta-train a network to compare with the trees, or teach the trees your tasks",
    options=TrainOptions,
    handler="tunegate.commands.experience.train:run",
    examples=(
        "tunegate experience train experience.jsonl",
        "tunegate experience train experience.jsonl --out trained",
        "tunegate experience train experience.jsonl --trees",
    ),
)
