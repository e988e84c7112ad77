from __future__ import annotations

import io

import pytest

from tunegate.commands.table import Output, show_lines, show_table


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
