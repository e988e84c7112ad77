from __future__ import annotations

import subprocess
import sys

import pytest

from tunegate.cli.help_pages import is_answered, page
from tunegate.errors import ConfigError

HEAVY = ("numpy", "rich", "yaml", "cryptography", "tempfile", "hashlib", "tunegate.edges")


@pytest.mark.parametrize(
    ("line", "shown"),
    [
        (["help"], "tunegate [--version] COMMAND"),
        (["--help"], "compare"),
        (["help", "help"], "compare"),
        (["help", "--help"], "compare"),
        (["help", "cache"], "why-miss"),
        (["cache", "-h"], "why-miss"),
        (["help", "cache", "gc"], "--grace-hours N"),
        (["run", "--nonsense", "--help"], "tunegate run --base main"),
        (["--version"], "tunegate 0."),
    ],
)
def test_help_is_printed_at_every_level(
    line: list[str], shown: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert is_answered(line)
    assert shown in capsys.readouterr().out


@pytest.mark.parametrize("line", [["run"], ["fly"], ["help", "fly"], ["cache"], []])
def test_what_is_no_page_is_left_to_the_command(line: list[str]) -> None:
    assert not is_answered(line)


def test_help_of_what_does_not_exist_is_answered_with_the_nearest() -> None:
    with pytest.raises(ConfigError, match="Did you mean detect"):
        page(["help", "detct"])


@pytest.mark.parametrize("line", ["--version", "--help", "run --help", "cache gc --help"])
def test_a_page_waits_for_nothing_that_carries_a_command_out(line: str) -> None:
    script = (
        "import sys; from tunegate.cli.help_pages import is_answered; "
        f"assert is_answered({line.split()}); "
        f"print([m for m in {HEAVY} if m in sys.modules], file=sys.stderr)"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    )
    assert done.stderr == "[]\n"
