"""Small programs that ask the stand-in for its rules, each in a process of its own."""

import json
import sys
import textwrap
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tests.support.programs import run_program

_CHECKOUT = Path(__file__).resolve().parents[2]


def seen_by(variables: Mapping[str, str], text: str, program: str) -> Any:
    """Runs the program, and returns the value that it has assigned to `seen`. It has the kernels of
    the text as `m`, and the functions of `calls` as `c`."""
    lines = [
        "import ctypes, json",
        "from tests.cuda_stand_in import calls as c",
        f"TEXT = {text!r}",
        "m = c.Module(TEXT)",
        textwrap.dedent(program),
        "print(json.dumps(seen))",
    ]
    return _answer(variables, "\n".join(lines))


def given_by(variables: Mapping[str, str], module: str, call: str) -> Any:
    """Returns the result of a call of a function of the module."""
    return _answer(variables, f"import json, {module} as m; print(json.dumps(m.{call}))")


def _answer(variables: Mapping[str, str], program: str) -> Any:
    there = {**variables, "PYTHONPATH": f"{_CHECKOUT}:{variables['PYTHONPATH']}"}
    done = run_program([sys.executable, "-c", program], env=there)
    assert done.returncode == 0, done.stderr[-2000:]
    return json.loads(done.stdout.splitlines()[-1])
