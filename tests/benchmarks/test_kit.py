from __future__ import annotations

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
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


def said(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", PROGRAM, *arguments],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )


def test_options_have_the_types_of_their_defaults_and_a_table_its_columns() -> None:
    assert said().stdout.splitlines() == [
        "| model | trials | seconds | seeds | folders | server | shuffled |",
        "|---|--:|--:|--:|--:|---|--:|",
        "| squeezenet | 8 | 1.5 | [1, 2] | None | moto | False |",
    ]


def test_what_the_command_line_says_takes_the_place_of_a_default() -> None:
    given = ("resnet50", "--trials", "3", "--seconds", "2", "--seeds", "7", "--shuffled")
    assert said(*given, "--server", "ceph").stdout.splitlines()[-1] == (
        "| resnet50 | 3 | 2.0 | [7] | None | ceph | True |"
    )


def test_what_is_none_of_the_choices_is_refused() -> None:
    done = said("--server", "other")
    assert done.returncode == 2
    assert "invalid choice: 'other'" in done.stderr
