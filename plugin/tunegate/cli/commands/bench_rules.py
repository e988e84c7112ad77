"""`tunegate bench-rules`, as the command line knows it."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from tunegate.cli.command import Command
from tunegate.cli.option import Option
from tunegate.cli.shared_options import Options


class BenchRulesOptions(Options, frozen=True, kw_only=True):
    """The recorded launches."""

    data: Annotated[Path, Option("recorded launches, .npz", "FILE", Path)]


COMMAND = Command(
    name="bench-rules",
    summary="show what gates would have said about recorded launches",
    options=BenchRulesOptions,
    handler="tunegate.commands.bench_rules:run",
    examples=("tunegate bench-rules --data launches.npz",),
)
