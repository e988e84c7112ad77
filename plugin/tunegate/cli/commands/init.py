"""`tunegate init`, as the command line knows it."""

from __future__ import annotations

from typing import Annotated

from tunegate.cli.command import Command
from tunegate.cli.option import Option
from tunegate.cli.shared_options import Options


class InitOptions(Options, frozen=True, kw_only=True):
    """Options of `init`."""

    force: Annotated[bool, Option("overwrite existing files")] = False


COMMAND = Command(
    name="init",
    summary="write a tunegate.yaml and a workflow for the models found here",
    options=InitOptions,
    handler="tunegate.commands.init:run",
    examples=(
        "tunegate init",
        "tunegate init --repository ../models --force",
    ),
)
