"""Switches from an environment that was chosen before the configuration was read to one with
everything: the base's rules may need more than the checkout's configuration says."""

import os
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NoReturn

from tunegate.cli.main import execute
from tunegate.cli.unexpected import Ending
from tunegate.errors import ConfigError

_BOOTSTRAP = Path(__file__).resolve().parent.parent / "bootstrap.py"
_NARROW = "run-"
"""A lock for one runtime is named after it."""
_EVERYTHING = "everything"


class WiderEnvironmentNeeded(Exception):
    """The configuration needs more than is installed here."""


def execute_in_narrow(arguments: Sequence[str]) -> Ending:
    """Does the same as `execute`. Raises WiderEnvironmentNeeded instead of reporting an
    unusable configuration: nothing has been measured or reported then."""
    ending = execute(arguments)
    if ending.exit_code == ConfigError.exit_code:
        raise WiderEnvironmentNeeded(ending.problem)
    return ending


def is_narrow(environment: Mapping[str, str]) -> bool:
    """Returns whether the bootstrap made an environment for one runtime."""
    return environment.get("TUNEGATE_ENVIRONMENT", "").startswith(_NARROW)


def run_in_wider(environment: Mapping[str, str]) -> NoReturn:
    """Replaces this process by the action in an environment with everything."""
    python = environment["TUNEGATE_BASE_PYTHON"]
    sys.stdout.write("tunegate: more than one runtime may be needed: the rest is installed\n")
    sys.stdout.flush()
    command = [python, "-I", "-X", "utf8", str(_BOOTSTRAP), "run"]
    os.execve(python, command, {**environment, "TUNEGATE_ENVIRONMENT": _EVERYTHING})
