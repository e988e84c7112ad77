from __future__ import annotations

import io
import sys
from pathlib import Path

import pytest

from tunegate.system.output.log_file import LogFile, Talk, talking
from tunegate.system.progress.shown_progress import progress


class Screen(io.StringIO):
    """A terminal that remembers."""

    def isatty(self) -> bool:
        return True


def told(path: Path) -> list[str]:
    """The lines of a log without their times."""
    return [line.partition(" ")[2] for line in path.read_text().splitlines()]


def test_what_is_said_goes_to_both(tmp_path: Path) -> None:
    talk = Talk(io.StringIO())
    talk.begin(quiet=False, verbose=False, log=LogFile(tmp_path / "log"))
    talk.write("one\n")
    talk.note("two\n")
    talk.end()
    assert talk.stream.getvalue() == "one\n"  # type: ignore[attr-defined] # it is a StringIO
    assert told(tmp_path / "log") == ["one", "two"]


def test_quiet_says_nothing_and_keeps_everything(tmp_path: Path) -> None:
    screen = Screen()
    talk = Talk(screen)
    talk.begin(quiet=True, verbose=False, log=LogFile(tmp_path / "log"))
    shown = progress(talk)
    shown.step("tuning")
    shown.update("3 of 9")
    shown.close()
    talk.write("the report\n")
    talk.insist("an error\n")
    talk.end()
    assert screen.getvalue() == "an error\n"
    assert not talk.isatty()
    lines = "\n".join(told(tmp_path / "log"))
    assert all(each in lines for each in ("tuning", "3 of 9", "the report", "an error"))


def test_verbose_gives_every_update_a_line_on_a_terminal_too() -> None:
    screen = Screen()
    talk = Talk(screen)
    talk.begin(quiet=False, verbose=True, log=None)
    shown = progress(talk)
    shown.step("tuning")
    for count in range(3):
        shown.update(f"{count} of 3")
    shown.close()
    assert [line.split("  ")[-1] for line in screen.getvalue().splitlines()] == [
        "tuning",
        "0 of 3",
        "1 of 3",
        "2 of 3",
    ]


def test_stderr_is_what_it_was_afterwards(capsys: pytest.CaptureFixture[str]) -> None:
    before = sys.stderr
    with talking() as talk:
        assert sys.stderr is talk
        sys.stderr.write("said\n")
    assert sys.stderr is before
    assert capsys.readouterr().err == "said\n"
