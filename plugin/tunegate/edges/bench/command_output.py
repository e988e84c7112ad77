"""A command line of the user's, run without a shell."""

from __future__ import annotations

import shlex
import subprocess

from tunegate.errors import MeasurementError

_LIMIT_SECONDS = 600.0


def output_of(line: str, *more: str) -> str:
    """What it prints; `more` are arguments behind those of the line. Raises MeasurementError for a
    command that cannot be run, fails, or does not end in ten minutes."""
    try:
        done = subprocess.run(
            [*shlex.split(line), *more],
            capture_output=True,
            text=True,
            timeout=_LIMIT_SECONDS,
            check=False,
        )
    except (OSError, ValueError) as error:
        message = f"`{line}` cannot be run ({error})"
        raise MeasurementError(message) from error
    except subprocess.TimeoutExpired as error:
        message = f"`{line}` did not end in {_LIMIT_SECONDS:.0f} s"
        raise MeasurementError(message) from error
    if done.returncode != 0:
        last = done.stderr.strip().splitlines()[-1:] or ["it said nothing"]
        message = f"`{line}` exited with {done.returncode}: {last[0][:200]}"
        raise MeasurementError(message)
    return done.stdout
