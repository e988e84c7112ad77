"""The check whether the compiler works on this machine at all, in a child: one whose parts do not
fit ends the process."""

from __future__ import annotations

from tunegate.edges.processes import interpreter

_MODULE = "tunegate.edges.metaschedule.self_test"
_LIMIT_SECONDS = 120


def compiler_failure() -> str:
    """Returns how the smallest use of the compiler ends; empty where it works."""
    done = interpreter.ask(_MODULE, variables={}, limit_seconds=_LIMIT_SECONDS)
    if done is None:
        return f"hangs ({_LIMIT_SECONDS} s)"
    if done.returncode == 0:
        return ""
    last = done.stderr.decode(errors="replace").strip().splitlines()[-1:] or ["no message"]
    return f"exit {done.returncode}: {last[0][:200]}"
