"""The command line: what was asked, done, and turned into an exit code.

The only place that catches everything. stdout carries the product, stderr the talk.
"""

from __future__ import annotations

import sys
import tempfile
import traceback
from collections.abc import Sequence
from pathlib import Path

from tunegate.arguments import parse
from tunegate.dispatch import COMMANDS
from tunegate.edges.signals import cancellable
from tunegate.errors import BUG, CANCELLED, PASS, USAGE, TunegateError


def entry() -> None:
    sys.exit(main(sys.argv[1:]))


def main(arguments: Sequence[str]) -> int:
    """Do what the arguments ask; the exit code of the contract comes back."""
    verbose = "-v" in arguments or "--verbose" in arguments
    try:
        with cancellable():
            asked = parse(arguments)
            return COMMANDS[asked.command](asked)
    except SystemExit as stop:  # argparse, after --help or --version
        return PASS if not stop.code else USAGE
    except KeyboardInterrupt:
        return _stopped("cancelled; what was finished is kept", CANCELLED, verbose=verbose)
    except TunegateError as error:
        return _stopped(str(error), error.exit_code, verbose=verbose)
    except Exception as error:  # noqa: BLE001 -- whatever it is, the user gets one line and a log
        return _stopped(_bug(error), BUG, verbose=verbose)


def _stopped(text: str, exit_code: int, *, verbose: bool) -> int:
    if verbose:
        traceback.print_exc(file=sys.stderr)
    sys.stderr.write(f"tunegate: error: {text}\n")
    return exit_code


def _bug(error: Exception) -> str:
    with tempfile.NamedTemporaryFile(
        "w", prefix="tunegate-", suffix=".log", delete=False, encoding="utf-8"
    ) as log:
        traceback.print_exc(file=log)
    what = f"{type(error).__name__}: {error}".splitlines()[0]
    return f"a bug of tunegate ({what}). Please report it with the log {Path(log.name)}."
