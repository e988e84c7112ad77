from __future__ import annotations

import io
import re

import pytest

from tunegate.cli.handlers.table import Output, show_lines, show_table


class Closed(io.StringIO):
    """A pipe whose reader has gone away."""

    def flush(self) -> None:
        raise BrokenPipeError


def test_a_reader_that_has_gone_away_does_not_end_the_process() -> None:
    with pytest.raises(BrokenPipeError):
        Output(file=Closed()).print("a line")


def test_a_cell_from_a_store_is_no_markup(capsys: pytest.CaptureFixture[str]) -> None:
    show_table("[b]title", ("column",), [("[red]record[/red]",)])
    show_lines(["[link=x]line[/link]"])
    shown = capsys.readouterr().out
    assert "[red]record[/red]" in shown
    assert "[link=x]line[/link]" in shown


def test_a_long_line_is_not_folded(capsys: pytest.CaptureFixture[str]) -> None:
    show_lines(["x" * 500])
    assert capsys.readouterr().out == "x" * 500 + "\n"


WIDE = ("models/encoder.onnx", "cpu: a processor with a long name", 230, 77, "x" * 20)


def test_a_log_gets_whole_rows(capsys: pytest.CaptureFixture[str]) -> None:
    show_table("", ("model", "target", "records", "tasks", "digest"), [WIDE])
    (row,) = [line for line in capsys.readouterr().out.splitlines() if "encoder" in line]
    assert all(str(cell) in row for cell in WIDE)


@pytest.mark.parametrize("width", [40, 80])
def test_a_narrow_terminal_gets_lines_and_no_word_is_folded(
    width: int, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", str(width))
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("NO_COLOR", "1")
    show_table("", ("model", "target", "records", "tasks", "digest"), [WIDE])
    show_table(
        "", ("check", "detail"), [("cache", "a place that holds nothing of ours yet, it says")]
    )
    shown = re.sub(r"\x1b\[[0-9;]*m", "", capsys.readouterr().out)
    words = {word for line in shown.splitlines() for word in line.replace(",", " ").split()}
    assert {"models/encoder.onnx", "processor", "x" * 20, "nothing"} <= words
    assert max(map(len, shown.splitlines())) <= width
