from __future__ import annotations

import ast
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
COMMANDS = sorted(
    path
    for path in (ROOT / "benchmarks").rglob("*.py")
    if path.parent.name != "kit" and 'if __name__ == "__main__":' in path.read_text()
)
HELP_OF_EACH = """\
import contextlib, io, runpy, sys
for name in sys.argv[1:]:
    sys.argv = [name, "--help"]
    told = io.StringIO()
    with contextlib.suppress(SystemExit), contextlib.redirect_stdout(told):
        runpy.run_module(name, run_name="__main__")
    print(name, "usage:" in told.getvalue())
"""


def test_every_benchmark_says_what_it_does_and_takes() -> None:
    """They run in one process: importing a compiler for each of them would take minutes."""
    names = [".".join(path.relative_to(ROOT).with_suffix("").parts) for path in COMMANDS]
    done = subprocess.run(
        [sys.executable, "-c", HELP_OF_EACH, *names],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    told = dict(line.rsplit(" ", 1) for line in done.stdout.splitlines())
    assert [name for name in names if told.get(name) != "True"] == []
    assert len(COMMANDS) > 30


def test_every_option_that_a_benchmark_reads_is_one_that_it_takes() -> None:
    read = {path.name: ast.parse(path.read_text()) for path in COMMANDS}
    unknown = {name: options_read(tree) - options_taken(tree) for name, tree in read.items()}
    assert {name: options for name, options in unknown.items() if options} == {}


def options_read(tree: ast.Module) -> set[str]:
    every = [node for node in ast.walk(tree) if isinstance(node, ast.Attribute)]
    return {node.attr for node in every if ast.unparse(node.value) == "options"}


def options_taken(tree: ast.Module) -> set[str]:
    """Those of all calls of `command_line`: keywords, and texts or pairs for the arguments."""
    calls = [node for node in ast.walk(tree) if isinstance(node, ast.Call)]
    return {
        name
        for call in calls
        if ast.unparse(call.func) == "command_line"
        for name in names_in(call)
    }


def names_in(call: ast.Call) -> Iterator[str]:
    yield from (str(keyword.arg) for keyword in call.keywords)
    for argument in call.args:
        first = argument.elts[0] if isinstance(argument, ast.Tuple) else argument
        if isinstance(first, ast.Constant):
            yield str(first.value).partition("=")[0].removesuffix("...")
