"""Small programs that ask the stand-in for its rules, each in a process of its own."""

import json
import subprocess
import sys
import textwrap
from collections.abc import Mapping
from pathlib import Path
from typing import Any

_CHECKOUT = Path(__file__).resolve().parents[2]


def seen_by(variables: Mapping[str, str], text: str, program: str) -> Any:
    """What the program has assigned to `seen`. It has the kernels of the text as `m`, and the
    functions of `calls` as `c`."""
    lines = [
        "import ctypes, json",
        "from tests.cuda_stand_in import calls as c",
        f"TEXT = {text!r}",
        "m = c.Module(TEXT)",
        textwrap.dedent(program),
        "print(json.dumps(seen))",
    ]
    done = subprocess.run(
        [sys.executable, "-c", "\n".join(lines)],
        env={**variables, "PYTHONPATH": f"{_CHECKOUT}:{variables['PYTHONPATH']}"},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)
