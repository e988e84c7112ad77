"""Turns unexpected exceptions into an exit code and one line. Never 1, which means a regression.
Imports only the standard library and the exit codes."""

from __future__ import annotations

import errno
import opcode
from typing import NamedTuple

from tunegate.errors import (
    BUG,
    CANCELLED,
    UNFIT,
    USAGE,
    ConfigKey,
)

_AGAIN = "Install it again: python -m pip install --force-reinstall tunegate"
_LONGEST = 300


class Ending(NamedTuple):
    exit_code: int
    problem: str = ""
    about: ConfigKey | None = None
    others: tuple[str, ...] = ()

    @property
    def problems(self) -> tuple[str, ...]:
        """Returns every line to print: most endings have one, or none."""
        return (self.problem, *self.others) if self.problem else ()


def explained(error: BaseException) -> Ending:
    """Returns the ending: machine trouble is an unfit environment, anything else a bug of ours."""
    if was_cancelled(error):
        return Ending(CANCELLED, "cancelled; what was finished is kept")
    if isinstance(error, OSError) and error.errno == errno.ENAMETOOLONG:
        return Ending(USAGE, f"a name is longer than this machine takes ({named(error)})")
    trouble = _trouble(error)
    return Ending(UNFIT, trouble) if trouble else Ending(BUG, f"a bug of tunegate ({named(error)})")


def was_cancelled(error: BaseException | None) -> bool:
    """Returns whether the exception is a cancel, or follows from one: cleaning up afterwards may
    fail, for example on a lost terminal."""
    seen = set()
    while error is not None and id(error) not in seen:
        if isinstance(error, KeyboardInterrupt):
            return True
        seen.add(id(error))
        error = error.__cause__ or error.__context__
    return False


def _trouble(error: BaseException) -> str:
    """Returns the trouble of the machine or the installation, '' if it is neither."""
    match error:
        case ImportError() | SyntaxError():
            return f"the installation is damaged ({named(error)}). {_AGAIN}"
        case BrokenPipeError():
            return "whoever reads the output has gone away"
        case MemoryError():
            return "out of memory. Use a machine with more, or a smaller model."
        case ValueError() if _came_of_an_import(error):
            return f"the installation is damaged ({named(error)}). {_AGAIN}"
        case OSError():
            return f"this machine refuses: {named(error)}"
        case _:
            return ""


def _came_of_an_import(error: BaseException) -> bool:
    """Returns whether an import statement itself raised the exception, not the imported code:
    before Python 3.11.4 a source file with null bytes is a ValueError."""
    trace = error.__traceback__
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    if trace is None:
        return False
    return trace.tb_frame.f_code.co_code[trace.tb_lasti] == opcode.opmap["IMPORT_NAME"]


def named(error: BaseException) -> str:
    """Returns its type and the first line of its text, or the type alone if the text fails."""
    try:
        lines = str(error).strip().splitlines()
    except Exception:  # noqa: BLE001 -- the text of a foreign exception may be code
        lines = []
    kind = type(error).__name__
    return f"{kind}: {lines[0][:_LONGEST]}" if lines else kind
