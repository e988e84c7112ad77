"""Turns unexpected exceptions into an exit code and one line. Never 1, which means a regression.
Imports only the standard library, and what does so itself."""

import errno
import opcode
import threading
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from tunegate import errors
from tunegate.regular_files import NO_ROOM, is_disk_full

_AGAIN = "Install it again: python -m pip install --force-reinstall tunegate"
_LONGEST = 300
_NOT_MAPPED = ("failed to map segment", "annot allocate memory")
"""The loader's words for a process that may take no more memory."""


class Ending(NamedTuple):
    exit_code: int
    problem: str = ""
    about: errors.ConfigKey | None = None
    others: tuple[str, ...] = ()

    @property
    def problems(self) -> tuple[str, ...]:
        """Returns every line to print: most endings have one, or none."""
        return (self.problem, *self.others) if self.problem else ()


def explain_error(error: BaseException) -> Ending:
    """Returns the ending: machine trouble is an unfit environment, anything else a bug of ours."""
    if errors.was_cancelled(error):
        if not _can_start_a_thread():  # OpenBLAS then sends SIGINT to its own process
            return Ending(errors.UNFIT, errors.NO_THREAD)
        return Ending(errors.CANCELLED, "cancelled; what was finished is kept")
    if isinstance(error, OSError) and error.errno == errno.ENAMETOOLONG:
        return Ending(
            errors.USAGE, f"a name is longer than this machine takes ({error_text(error)})"
        )
    trouble = _trouble(error)
    return (
        Ending(errors.UNFIT, trouble)
        if trouble
        else Ending(errors.BUG, f"a bug of tunegate ({error_text(error)})")
    )


def _trouble(error: BaseException) -> str:
    """Returns the trouble of the machine or the installation, '' if it is neither."""
    match error:
        case ImportError() if any(words in str(error) for words in _NOT_MAPPED):
            trouble = (
                "a library does not fit into the memory. Raise ulimit -v, or the container's limit."
            )
        case ImportError() | SyntaxError() | ValueError() if _is_of_installation(error):
            trouble = f"the installation is damaged ({error_text(error)}). {_AGAIN}"
        case BrokenPipeError():
            trouble = "whoever reads the output has gone away"
        case MemoryError():
            trouble = "out of memory. Use a machine with more, or a smaller model."
        case RuntimeError() if "can't start new thread" in str(error):
            trouble = errors.NO_THREAD
        case OSError():
            advice = errors.LIMIT_ADVICE.get(error.errno or 0, "")
            trouble = f"this machine refuses: {error_text(error)}{advice and f'. {advice}'}"
        case _:
            trouble = ""
    return trouble


def _can_start_a_thread() -> bool:
    try:
        threading.Thread(target=int).start()
    except RuntimeError:
        return False
    return True


def _is_of_installation(error: BaseException) -> bool:
    """Returns whether a package cannot be imported. Of a ValueError, whether an import statement
    itself raised it, not the imported code: before Python 3.11.4 a source file with null bytes is
    one."""
    if not isinstance(error, ValueError):
        return True
    trace = error.__traceback__
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    if trace is None:
        return False
    return trace.tb_frame.f_code.co_code[trace.tb_lasti] == opcode.opmap["IMPORT_NAME"]


def error_text(error: BaseException) -> str:
    """Returns its type and the first line of its text, or the type alone if the text fails."""
    try:
        lines = str(error).strip().splitlines()
    except Exception:  # noqa: BLE001 -- the text of a foreign exception may be code
        lines = []
    kind = type(error).__name__
    return f"{kind}: {lines[0][:_LONGEST]}" if lines else kind


# The check whether a failure came from a full disk. A compiler, or ONNX Runtime, that could not
# write a file says that the model is broken; so the disks are asked.

_OWN_LIMITS = {errno.EMFILE, errno.ENFILE, errno.EFBIG}
"""The limits of this process, whatever file it met them at."""


def as_full_disk(error: Exception, directories: Sequence[Path]) -> Exception:
    """Returns the error itself, or, where a disk is full or a limit of the process is met, an error
    about that. `directories` are what the run writes to. A cancelled run, and what the user can
    mend, stay what they are."""
    if isinstance(error, (errors.CancelledError, errors.ConfigError, errors.RevisionError)):
        return error
    limit = next((e for e in _chain(error) if e.errno in _OWN_LIMITS), None)
    if limit is not None:
        advice = errors.LIMIT_ADVICE[limit.errno or 0]
        return errors.EnvironmentUnfitError(f"this machine refuses: {error_text(limit)}. {advice}")
    lacking = next((e for e in _chain(error) if e.errno in NO_ROOM), None)
    full = next(filter(is_disk_full, directories), None)
    if lacking is None and full is None:
        return error
    where = full or (lacking.filename if lacking is not None else None)
    return errors.EnvironmentUnfitError(
        f"a disk is full{f', that of {where}' if where else ''} ({_first_line(error)}). What was "
        "finished is kept. Make room, or choose another place with --out or TMPDIR, and run again."
    )


def _chain(error: BaseException | None) -> Iterator[OSError]:
    while error is not None:
        if isinstance(error, OSError):
            yield error
        error = error.__cause__ or error.__context__


def _first_line(error: Exception) -> str:
    first, *_ = [*str(error).splitlines(), type(error).__name__]
    return first.rstrip(".")
