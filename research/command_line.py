"""Runs a script of research as the product runs a command: its options, one line for a fault, and
an exit code. `python -m research.experience.collect --help` lists what a script takes."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from typing import Any

from tunegate.cli.command import Command
from tunegate.cli.parse import command_help, parsed_options
from tunegate.errors import CANCELLED, PASS, TunegateError, was_cancelled
from tunegate.system.output.log_file import talking
from tunegate.system.processes.signals import cancellable


def carried_out(command: Command, run: Callable[[Any], int], words: Sequence[str]) -> int:
    """Returns the exit code of `run`, which gets the options in `words`; expected trouble is one
    line on stderr and the code of its kind."""
    with talking() as talk:
        try:
            with cancellable():
                if {"-h", "--help"}.intersection(words):
                    sys.stdout.write(_as_script(command_help(command)))
                    return PASS
                options = parsed_options(command, words)
                common = options.common
                talk.begin(quiet=common.quiet, verbose=common.verbose, log=None)
                return run(options)
        except TunegateError as error:
            talk.write(f"error: {_as_script(str(error))}\n")
            return error.exit_code
        except KeyboardInterrupt as error:
            if not was_cancelled(error):
                raise
            return CANCELLED


def _as_script(text: str) -> str:
    """The core's help calls every command `tunegate NAME`; these are modules."""
    return text.replace("tunegate research.", "python -m research.")
