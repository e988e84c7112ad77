"""The outermost frame of the action. Whatever is missing or broken behind it ends in one annotation
and a documented exit code, never in 1.

It runs before anything else is imported, so it imports only what every Python has already loaded.
"""

from __future__ import annotations

import os
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import NoReturn

_UNFIT = 4


def entry() -> NoReturn:
    """The console script, `python -m tunegate_action`, and what the bootstrap starts."""
    try:
        from tunegate.cli.entry import leave
    except BaseException as error:  # noqa: BLE001 -- nothing may reach the interpreter
        _on_stdout(f"the installation is damaged ({type(error).__name__}: {error})")
        sys.exit(_UNFIT)
    leave(_action, _on_stdout)


def _action() -> int:
    from tunegate_action.main import main

    return main(os.environ)


def _on_stdout(problem: str) -> None:
    escaped = problem.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")
    sys.stdout.write(f"::error title=tunegate::{escaped}\n")
