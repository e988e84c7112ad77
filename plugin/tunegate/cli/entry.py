"""The outermost frame of a command. Whatever is missing or broken behind it ends in one line and a
documented exit code; Python itself would exit with 1, a regression.

It runs before anything else is imported, so it imports only what every Python has already loaded.
"""

from __future__ import annotations

import os
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import NoReturn, TextIO

_UNFIT = 4
"""The exit code of an unfit environment. It repeats errors.py, which may be missing."""


def entry() -> NoReturn:
    """The console script, and `python -m tunegate`."""
    leave(_command, _on_stderr)


def leave(program: Callable[[], int], say: Callable[[str], None]) -> NoReturn:
    """Ends this process with the program's exit code, or that of its failure."""
    _open_closed_streams()
    _write_any_name()
    code = _exit_code_after_flush(run_guarded(program, say))
    _forget_handled_interrupt()
    sys.exit(code)


def run_guarded(program: Callable[[], int], say: Callable[[str], None]) -> int:
    """Returns the program's exit code, in a process that takes nothing from the checkout. Any
    exception is reported in one line, with an exit code that is never 1."""
    try:
        problem = _isolation_problem() or _machine_problem()
        _learn_how_children_end()
        if not problem:
            return program()
        code = _UNFIT
    except BaseException as error:  # noqa: BLE001 -- nothing may reach the interpreter
        code, problem = _explain(error)
    try:
        say(problem)
    except Exception:  # noqa: BLE001, S110 -- the exit code still reports it
        pass
    return code


def _command() -> int:
    arguments = sys.argv[1:]
    from tunegate.cli.help_pages import is_answered

    if is_answered(arguments):
        return 0
    from tunegate.cli.main import main

    return main(arguments)


def _on_stderr(problem: str) -> None:
    sys.stderr.write(f"tunegate: error: {problem}\n")


def _isolation_problem() -> str:
    """Returns what prevents isolation, '' if nothing does. Nothing may be imported after it."""
    try:
        from tunegate.isolation import isolate

        isolate()
    except Exception as error:  # noqa: BLE001 -- whatever it is, no import is safe
        return (
            f"this directory or the installation cannot be used ({type(error).__name__}: {error})"
        )
    return ""


def _machine_problem() -> str:
    from tunegate.cli.supported_machine import this_machine, why_unsupported

    return why_unsupported(this_machine())


def _learn_how_children_end() -> None:
    """Takes back that SIGCHLD is ignored, as whoever starts this process may have it. The kernel
    then forgets how children end, and Python takes each for a success."""
    import signal

    signal.signal(signal.SIGCHLD, signal.SIG_DFL)


def _explain(error: BaseException) -> tuple[int, str]:
    try:
        from tunegate.cli.unexpected import explain_error

        code, problem, *_ = explain_error(error)
        return code, problem
    except BaseException:  # noqa: BLE001 -- it may be what is missing
        return _UNFIT, f"the installation is damaged ({type(error).__name__}). Install it again."


def _open_closed_streams() -> None:
    """Replaces closed streams: a file that got the number of one would receive whatever is
    printed."""
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:
            setattr(sys, name, open(os.devnull, mode, encoding="utf-8"))


def _write_any_name() -> None:
    """Lets streams escape what their encoding lacks: names in a message may hold any character."""
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="backslashreplace")


def _forget_handled_interrupt() -> None:
    """Clears a mark in the interpreter. A KeyboardInterrupt that was raised while a string was
    executed (as `namedtuple` does) leaves it, and a module under `python -m` then ends by SIGINT,
    whatever its exit code (`Py_RunMain` in Modules/main.c). The next evaluated string clears it."""
    eval("0")  # noqa: S307 -- a constant


def _exit_code_after_flush(code: int) -> int:
    """Returns the exit code after flushing all output. If standard output is lost, it is no
    pass."""
    problems = {stream: flush(stream) for stream in (sys.stdout, sys.stderr)}
    return _UNFIT if code == 0 and problems[sys.stdout] else code


def flush(stream: TextIO) -> str:
    """Flushes a stream. If it is lost, returns why, and gives it up: the interpreter flushes again
    at its end, and would end with an exit code of its own."""
    try:
        stream.flush()
    except (OSError, ValueError) as error:
        try:
            with open(os.devnull, "wb") as nowhere:
                os.dup2(nowhere.fileno(), stream.fileno())
        except (OSError, ValueError):  # it has no file
            pass
        return getattr(error, "strerror", "") or "it is closed"
    return ""
