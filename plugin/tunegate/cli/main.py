"""The command line: what was asked, done, and turned into an exit code.

What it cannot be imported for, `cli/entry.py` says. stdout carries the product, stderr the talk.
"""

from __future__ import annotations

import importlib
import os
import sys
import tempfile
import traceback
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path

from tunegate.cli.parser import Parsed, parse
from tunegate.cli.shared_options import Options
from tunegate.cli.unexpected import Ending, explained, was_cancelled
from tunegate.cli.written_verdict import as_written
from tunegate.edges.output.full_disk import as_full_disk
from tunegate.edges.processes.signals import cancellable
from tunegate.errors import BUG, PASS, CancelledError, TunegateError
from tunegate.render.escape import visible

_MAX_PROBLEM = 4000
"""Characters of a message: names in it come from the checkout."""


def main(arguments: Sequence[str]) -> int:
    """Do what the arguments ask; the exit code of the contract comes back."""
    ended = carried_out(arguments)
    if ended.problem:
        with suppress(OSError):  # the terminal may be what was lost
            sys.stderr.write(f"tunegate: error: {visible(ended.problem, _MAX_PROBLEM)}\n")
            sys.stderr.flush()
    return ended.exit_code


def carried_out(arguments: Sequence[str]) -> Ending:
    """How it ended, with what went wrong in one line that nobody has said yet."""
    verbose = "-v" in arguments or "--verbose" in arguments
    asked: Parsed | None = None
    try:
        with cancellable():
            asked = parse(arguments)
            return Ending(PASS if asked is None else _done(asked))
    except (Exception, KeyboardInterrupt, SystemExit) as error:  # noqa: BLE001 -- one line, always
        if verbose:
            traceback.print_exc(file=sys.stderr)
        return _stopped(error, asked)


def _done(asked: Parsed) -> int:
    return as_written(_handler(asked.command.handler)(asked.options), asked)


def _handler(reference: str) -> Callable[[Options], int]:
    """Imported when the command runs: drawing and statistics take two seconds, and most commands
    need neither."""
    module, _, name = reference.partition(":")
    function: Callable[[Options], int] = getattr(importlib.import_module(module), name)
    return function


def _stopped(error: BaseException, asked: Parsed | None) -> Ending:
    if isinstance(error, Exception):
        error = as_full_disk(error, _written_to(asked))
    is_of_cancel = was_cancelled(error) and not isinstance(error, CancelledError)
    if isinstance(error, TunegateError) and not is_of_cancel:
        return Ending(error.exit_code, str(error))
    ending = explained(error)
    return _with_log(error, ending) if ending.exit_code == BUG else ending


def _written_to(asked: Parsed | None) -> list[Path]:
    """`tempfile` would name another place where this one is full."""
    out = [asked.options.common.out] if asked else []
    return [*out, Path(os.environ.get("TMPDIR") or "/tmp")]  # noqa: S108 -- only its room is asked


def _with_log(error: BaseException, ending: Ending) -> Ending:
    try:
        with tempfile.NamedTemporaryFile(
            "w", prefix="tunegate-", suffix=".log", delete=False, encoding="utf-8"
        ) as log:
            traceback.print_exception(error, file=log)
    except OSError:
        advice = "Please report it with what `--verbose` shows."
    else:
        advice = f"Please report it with the log {Path(log.name)}."
    return Ending(BUG, f"{ending.problem}. {advice}")
