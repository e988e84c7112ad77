"""`tunegate completion`, as the command line knows it."""

from __future__ import annotations

from typing import Annotated, Literal, get_args

from tunegate.cli.command import Command
from tunegate.cli.option import Argument
from tunegate.cli.shared_options import Options

Shell = Literal["bash", "zsh", "fish"]


class CompletionOptions(Options, frozen=True, kw_only=True):
    """The shell that completes."""

    shell: Annotated[Shell, Argument("the shell", "SHELL", choices=get_args(Shell))]


COMMAND = Command(
    name="completion",
    summary="print what makes a shell complete commands and options",
    options=CompletionOptions,
    handler="tunegate.commands.completion:run",
    examples=(
        "tunegate completion bash",
        "tunegate completion zsh",
        "tunegate completion fish",
    ),
)
