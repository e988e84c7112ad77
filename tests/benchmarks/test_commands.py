from __future__ import annotations

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
COMMANDS = sorted(
    path
    for path in (ROOT / "benchmarks").glob("*.py")
    if 'if __name__ == "__main__":' in path.read_text()
)
HELP_OF_EACH = """\
import contextlib, io, runpy, sys
sys.path.insert(0, sys.argv[1])
for path in sys.argv[2:]:
    sys.argv = [path, "--help"]
    told = io.StringIO()
    with contextlib.suppress(SystemExit), contextlib.redirect_stdout(told):
        runpy.run_path(path, run_name="__main__")
    print(path, "usage:" in told.getvalue())
"""


def test_every_benchmark_says_what_it_does_and_takes() -> None:
    """They run in one process: importing a compiler for each of them would take minutes."""
    done = subprocess.run(
        [sys.executable, "-c", HELP_OF_EACH, str(ROOT / "benchmarks"), *map(str, COMMANDS)],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    told = dict(line.rsplit(" ", 1) for line in done.stdout.splitlines())
    assert [path.name for path in COMMANDS if told.get(str(path)) != "True"] == []
    assert len(COMMANDS) > 30
