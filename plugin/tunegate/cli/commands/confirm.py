"""`tunegate confirm`, as the command line knows it."""

from __future__ import annotations

from typing import Annotated

from tunegate.cli.command import Command
from tunegate.cli.option import Argument
from tunegate.cli.shared_options import Options


class ConfirmOptions(Options, frozen=True, kw_only=True):
    """The verdicts of two machines."""

    verdicts: Annotated[tuple[str, str], Argument("two verdict.json files", "VERDICT", count=2)]


COMMAND = Command(
    name="confirm",
    summary="let a verdict fail only where a second machine's fails too",
    options=ConfirmOptions,
    handler="tunegate.commands.confirm:run",
    examples=("tunegate confirm first/verdict.json second/verdict.json --out confirmed",),
    judges=True,
)
