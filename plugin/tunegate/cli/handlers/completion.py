"""`tunegate completion SHELL`: a script for the shell, made from the declared commands."""

from __future__ import annotations

from tunegate.cli.commands.starting import CompletionOptions
from tunegate.cli.completion import bash, fish, zsh
from tunegate.cli.handlers.reporting import write_line
from tunegate.errors import PASS

_SCRIPTS = {"bash": bash.script, "zsh": zsh.script, "fish": fish.script}


def run(options: CompletionOptions) -> int:
    """Prints the script: no file of the shell is written."""
    write_line(_SCRIPTS[options.shell]().rstrip())
    return PASS
