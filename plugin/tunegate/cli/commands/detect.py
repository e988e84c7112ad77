"""`tunegate detect`, as the command line knows it."""

from __future__ import annotations

from typing import Annotated

from tunegate.cli.command import Command
from tunegate.cli.option import Option
from tunegate.cli.shared_options import ComparedRevisions, Options


class DetectOptions(Options, frozen=True, kw_only=True):
    """Options of `detect`."""

    revisions: ComparedRevisions = ComparedRevisions()
    pushed: Annotated[
        bool,
        Option("compare what a push brings, as pre-commit names it, and write no file"),
    ] = False


COMMAND = Command(
    name="detect",
    summary="say which models a change touches",
    options=DetectOptions,
    handler="tunegate.commands.detect:run",
    examples=(
        "tunegate detect",
        "tunegate detect --base main --json",
    ),
)
