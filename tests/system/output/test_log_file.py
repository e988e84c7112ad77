import io
import os
import re
import resource
import signal
import sys
from datetime import UTC, datetime
from pathlib import Path

import pytest

from tunegate.errors import OutputError
from tunegate.system.output.log_file import LogFile, Talk, talking
from tunegate.system.progress.shown_progress import progress

NOON = datetime(2026, 11, 23, 12, tzinfo=UTC)


def written(path: Path, *texts: str, **variables: str) -> str:
    log = LogFile(path, variables, lambda: NOON)
    for text in texts:
        log.write(text)
    log.close()
    return path.read_text()


def test_each_line_has_its_time(tmp_path: Path) -> None:
    assert written(tmp_path / "log", "a", "b\nc\n", "d") == (
        "2026-11-23T12:00:00Z ab\n2026-11-23T12:00:00Z c\n2026-11-23T12:00:00Z d\n"
    )


def test_no_secret_is_kept(tmp_path: Path) -> None:
    text = written(
        tmp_path / "log",
        "with hunter2-hunter2 and ",
        "half: s3://me:pass@host/b, -----KEY LINE ONE-----\n",
        AWS_SECRET_ACCESS_KEY="hunter2-hunter2",
        TUNEGATE_SIGNING_KEY="-----KEY LINE ONE-----\nand more of it",
    )
    assert text.endswith("with *** and half: s3://***@host/b, ***\n")


def test_the_log_that_the_file_held_is_replaced(tmp_path: Path) -> None:
    (tmp_path / "log").write_text("2026-11-22T12:00:00Z tunegate 0.1.0: of the last run\n" * 9)
    assert written(tmp_path / "log", "new\n") == "2026-11-23T12:00:00Z new\n"


@pytest.mark.parametrize("made", ["a link", "a pipe", "a directory", "in no directory"])
def test_only_a_plain_file_is_written(tmp_path: Path, made: str) -> None:
    path = tmp_path / "log"
    target = tmp_path / "target"
    target.write_text("mine")
    match made:
        case "a link":
            path.symlink_to(target)
        case "a pipe":
            os.mkfifo(path)
        case "a directory":
            path.mkdir()
        case _:
            path = tmp_path / "nowhere" / "log"
    with pytest.raises(OutputError, match="--log-file"):
        LogFile(path)
    assert target.read_text() == "mine"


def test_a_file_that_can_be_written_no_more_ends_the_log_and_not_the_run(tmp_path: Path) -> None:
    limit = resource.getrlimit(resource.RLIMIT_FSIZE)
    before = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    log = LogFile(tmp_path / "log", {}, lambda: NOON)
    resource.setrlimit(resource.RLIMIT_FSIZE, (100, limit[1]))
    try:
        for _ in range(9):
            log.write("a line that is told\n")
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limit)
        signal.signal(signal.SIGXFSZ, before)
    log.close()
    assert "has ended early (File too large)" in log.problem
    assert len((tmp_path / "log").read_text()) <= 100


@pytest.mark.parametrize("held", [b"\x08\x07 a model", b"models: []\n", b"2026-11-22 a diary"])
def test_a_file_that_is_no_log_is_never_replaced(tmp_path: Path, held: bytes) -> None:
    (tmp_path / "file").write_bytes(held)
    with pytest.raises(OutputError, match="no log of tunegate's"):
        LogFile(tmp_path / "file", {})
    assert (tmp_path / "file").read_bytes() == held


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
    expected = ["tuning", "0 of 3", "1 of 3", "2 of 3"]
    assert [line.split("  ")[-1] for line in screen.getvalue().splitlines()] == expected


def test_stderr_is_what_it_was_afterwards(capsys: pytest.CaptureFixture[str]) -> None:
    before = sys.stderr
    with talking() as talk:
        assert sys.stderr is talk
        sys.stderr.write("said\n")
    assert sys.stderr is before
    assert capsys.readouterr().err == "said\n"


def test_no_line_of_the_terminal_is_a_command_of_a_ci() -> None:
    stream = io.StringIO()
    talk = Talk(stream)
    for text in ("a ::b\n", "  :", ":add-matcher::x\r::stop\n", "m::n #", "#[group]##vso[x]", "\n"):
        talk.write(text)
    shown = stream.getvalue()
    assert not re.search(r"(^|[\r\n])\s*::|##", shown)
    plain = shown.replace("\u200b", "")
    assert plain == "a ::b\n  ::add-matcher::x\r::stop\nm::n ##[group]##vso[x]\n"
    assert "a ::b" in shown
    assert "m::n" in shown
