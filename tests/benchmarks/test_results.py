"""Benchmarks print tables, which become results, and these the page of figures."""

import ast
import json
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

from tests.support.programs import run_program

ROOT = Path(__file__).resolve().parents[2]
PRINTED = """\
from benchmarks.kit.command import command_line
from benchmarks.kit.tables import heading, row

command_line("What it measures.", trials=8)
print("begins")
heading("model | ms", words=(0,))
row("a", 1.5)
print("words of the program")
row("b", "2 \\\\| 3")
heading("what | cost | why", words=(0, 2))
print("| half a row |")
heading("nothing | here")
"""


def run(program: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    return run_program([sys.executable, "-c", program, *arguments], cwd=ROOT)


def tables_of(text: str) -> list[dict[str, object]]:
    program = """\
import sys, msgspec
from benchmarks.kit.markdown_tables import tables
sys.stdout.buffer.write(msgspec.json.encode(tables(sys.argv[1])))
"""
    found: list[dict[str, object]] = json.loads(run(program, text).stdout)
    return found


def test_tables_are_read_from_what_was_printed() -> None:
    first, second = tables_of(run(PRINTED).stdout)
    expected = {"columns": ["model", "ms"], "rows": [["a", "1.5"], ["b", "2 \\| 3"]], "words": [0]}
    assert first == expected
    wanted = {"columns": ["what", "cost", "why"], "rows": [["half a row", "", ""]], "words": [0, 2]}
    assert second == wanted


def test_a_later_run_keeps_the_words_and_replaces_the_figures(tmp_path: Path) -> None:
    program = f"""\
import sys
from pathlib import Path
from benchmarks.kit.results import Result, load, save, write
folder = Path({str(tmp_path)!r})
sys.argv = ["benchmarks/tuning/cap_and_kill.py", "--seed", "1", "--save", "cap"]
save("cap", "| a |\\n|--:|\\n| 1 |", folder)
words = load(folder / "cap.json")
import msgspec
write(folder / "cap.json", msgspec.structs.replace(words, title="The cap", says="It holds."))
save("cap", "| a |\\n|--:|\\n| 2 |", folder)
found = load(folder / "cap.json")
assert (found.title, found.says) == ("The cap", "It holds."), found
assert found.tables[0].rows == (("2",),), found
assert found.command == "python -m benchmarks.tuning.cap_and_kill --seed 1", found
assert found.machine and found.date and found.commit, found
"""
    done = run(program)
    assert done.returncode == 0, done.stderr


def test_a_benchmark_that_is_stopped_keeps_the_rows_that_it_has(tmp_path: Path) -> None:
    program = f"""\
import os, signal, sys
from pathlib import Path
from benchmarks.kit import command, results
from benchmarks.kit.tables import heading, row
command.save = lambda name, text, is_merged: results.save(name, text, Path({str(tmp_path)!r}))
sys.argv = ["benchmarks/x.py", "--save", "x"]
command.command_line("What it measures.")
heading("model | ms")
row("a", 1)
os.kill(os.getpid(), signal.SIGTERM)
"""
    done = run(program)
    assert done.returncode == 143, done.stderr
    assert '"a"' in (tmp_path / "x.json").read_text()


def test_the_pages_are_made_of_the_results() -> None:
    program = """\
from benchmarks.kit.page import PAGE, pages
from benchmarks.kit.results import RESULTS, load
made = pages(load(path) for path in sorted(RESULTS.glob("*.json")))
stale = [str(path) for path, text in made.items() if path.read_text() != text]
there = {*(PAGE.parent / "benchmarks").glob("*.md")}
assert not stale and there < {*made}, f"run `make figures`: {stale or there - {*made}}"
"""
    done = run(program)
    assert done.returncode == 0, done.stderr


def test_every_result_has_a_command() -> None:
    for path in (ROOT / "benchmarks" / "results").glob("*.json"):
        told = json.loads(path.read_text())["command"]
        assert told.startswith(
            ("tunegate ", "python -m benchmarks.", "python -m research.", "git checkout ")
        ), path.name


_NAMED = re.compile(r"(?<!&& python )-m (benchmarks(?:\.\w+)+)")
"""A benchmark of today: one that was deleted is run at a commit that has it."""


def test_every_benchmark_that_a_result_or_a_page_or_another_names_exists() -> None:
    folders = ("benchmarks", "docs", "tests", ".github")
    files = [ROOT / "README.md", *(path for each in folders for path in (ROOT / each).rglob("*.*"))]
    texts = [path.read_text() for path in files if path.suffix in {".md", ".json", ".py", ".sh"}]
    named = {name for text in texts for name in _NAMED.findall(text)}
    assert not [n for n in named if not (ROOT / n.replace(".", "/")).with_suffix(".py").is_file()]
    assert len(named) > 30


def test_a_part_that_is_measured_again_replaces_its_rows_alone(tmp_path: Path) -> None:
    program = """\
import pathlib, sys
from benchmarks.kit.results import load, save
known = "| model | ms |\\n|---|--:|\\n| a | 1 |\\n| a | 2 |\\n| b | 3 |\\n"
newer = "| model | ms |\\n|---|--:|\\n| a | 4 |\\n| c | 5 |\\n"
folder = pathlib.Path(sys.argv[1])
save("x", known, folder)
(table,) = load(save("x", newer, folder, is_merged=True)).tables
print(table.rows)
(table,) = load(save("x", newer, folder)).tables
print(table.rows)
"""
    merged, alone = run(program, str(tmp_path)).stdout.splitlines()
    assert merged == "(('a', '4'), ('b', '3'), ('c', '5'))"
    assert alone == "(('a', '4'), ('c', '5'))"


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
    done = run(HELP_OF_EACH, *names)
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


PROGRAM = """\
from pathlib import Path
from benchmarks.kit.averages import geometric, paired
from benchmarks.kit.command import Choice, Many, command_line, scratch_folder
from benchmarks.kit.tables import heading, row

options = command_line(
    "What it measures.",
    "model=squeezenet",
    trials=8,
    seconds=1.5,
    seeds=[1, 2],
    folders=Many(Path, is_required=False),
    server=Choice(("moto", "ceph"), "moto"),
    shuffled=False,
)
with scratch_folder() as folder:
    assert folder.is_dir()
heading("model | trials | seconds | seeds | folders | server | shuffled", words=(0, 5))
row(*vars(options).values())
assert geometric([1.0, 4.0]) == 2.0
times = iter([2.0, 1.0, 6.0, 2.0, 4.0, 4.0])
assert paired([lambda: next(times)] * 2, 3) == (4.0, 2.0, 2.0)
"""


def test_options_have_the_types_of_their_defaults_and_a_table_its_columns() -> None:
    assert run(PROGRAM).stdout.splitlines() == [
        "| model | trials | seconds | seeds | folders | server | shuffled |",
        "|---|--:|--:|--:|--:|---|--:|",
        "| squeezenet | 8 | 1.5 | [1, 2] | None | moto | False |",
    ]
