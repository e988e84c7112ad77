"""The command line: what was asked, done, and turned into an exit code.

The only place that catches everything. stdout carries the product, stderr the talk.
"""

from __future__ import annotations

import os
import sys
import tempfile
import traceback
from collections.abc import Sequence
from pathlib import Path

from tunegate.arguments import Invocation, parse
from tunegate.dispatch import COMMANDS
from tunegate.edges.full_disk import as_full_disk
from tunegate.edges.signals import cancellable
from tunegate.errors import BUG, CANCELLED, PASS, USAGE, TunegateError
from tunegate.isolation import keep_out


def entry() -> None:
    sys.exit(main(sys.argv[1:]))


def main(arguments: Sequence[str]) -> int:
    """Do what the arguments ask; the exit code of the contract comes back."""
    verbose = "-v" in arguments or "--verbose" in arguments
    asked: Invocation | None = None
    try:
        with cancellable():
            asked = parse(arguments)
            if asked.settings.repository != Path():  # isolate() keeps the working directory out
                keep_out(str(asked.settings.repository))
            return COMMANDS[asked.command](asked)
    except SystemExit as stop:  # argparse, after --help or --version
        return PASS if not stop.code else USAGE
    except KeyboardInterrupt:
        return _stopped("cancelled; what was finished is kept", CANCELLED, verbose=verbose)
    except Exception as error:  # noqa: BLE001 -- whatever it is, the user gets one line
        return _failed(as_full_disk(error, _written_to(asked)), verbose=verbose)


def _written_to(asked: Invocation | None) -> list[Path]:
    """`tempfile` would name another place where this one is full."""
    out = [asked.settings.out] if asked else []
    return [*out, Path(os.environ.get("TMPDIR") or "/tmp")]  # noqa: S108 -- only its room is asked


def _failed(error: Exception, *, verbose: bool) -> int:
    if isinstance(error, TunegateError):
        return _stopped(str(error), error.exit_code, verbose=verbose)
    return _stopped(_bug(error), BUG, verbose=verbose)


def _stopped(text: str, exit_code: int, *, verbose: bool) -> int:
    if verbose:
        traceback.print_exc(file=sys.stderr)
    sys.stderr.write(f"tunegate: error: {text}\n")
    return exit_code


def _bug(error: Exception) -> str:
    what = f"{type(error).__name__}: {error}".splitlines()[0]
    try:
        with tempfile.NamedTemporaryFile(
            "w", prefix="tunegate-", suffix=".log", delete=False, encoding="utf-8"
        ) as log:
            traceback.print_exc(file=log)
    except OSError:
        return f"a bug of tunegate ({what}). Please report it with what `--verbose` shows."
    return f"a bug of tunegate ({what}). Please report it with the log {Path(log.name)}."
