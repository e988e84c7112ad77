from __future__ import annotations

from tunegate.artifacts.measurements import Interval
from tunegate.report.html_page import html_table
from tunegate.report.table import (
    CellContent,
    ChangeInterval,
    Column,
    Identifier,
    ReportTable,
    SignedTime,
    StatusWord,
    number_column,
    text_column,
)


def drawn(cell: CellContent) -> str:
    columns: tuple[Column[CellContent], ...] = (
        text_column("first", lambda _: "first"),
        text_column("second", lambda row: row),
    )
    return str(html_table(ReportTable(columns, [cell]), 20, "title"))


def test_whoever_hears_the_page_or_has_no_mouse_can_use_a_wide_table() -> None:
    page = drawn("x")
    assert 'role="group" aria-label="title" tabindex="0"' in page
    assert '<th scope="row" class="name">' in page


def test_a_text_opens_no_element() -> None:
    assert "<img" not in drawn("<img src=x>")
    assert "<img" not in drawn(Identifier("<img src=x>"))


def test_a_long_text_is_cut_in_the_middle() -> None:
    assert "x" * 20 not in drawn("begin" + "x" * 100)


def test_a_verdict_colours_its_row() -> None:
    assert '<tr class="tone-fail">' in drawn(StatusWord("fail"))


def test_slower_and_faster_have_colours() -> None:
    assert 'class="slower"' in drawn(SignedTime(1.0))
    assert 'class="faster"' in drawn(SignedTime(-1.0))


def test_a_change_stands_above_its_interval() -> None:
    page = drawn(ChangeInterval(Interval(low=1.0, center=2.0, high=3.0)))
    assert '<strong>+2.0%</strong><span class="sub">+1.0 to +3.0%</span>' in page
    assert ">–<" in drawn(ChangeInterval(None))


def test_the_column_that_names_a_row_comes_first_with_what_stands_under_it() -> None:
    columns: tuple[Column[str], ...] = (
        number_column("size", lambda _: "1 MB"),
        text_column("model", Identifier),
        Column(title="target", cell=lambda _: Identifier("cpu"), under="model"),
    )
    page = str(html_table(ReportTable(columns, ["m.onnx"]), 100, "Models"))
    assert '<th scope="col">model</th><th scope="col" class="n">size</th>' in page
    assert '<code>m.onnx</code><span class="sub">cpu</span>' in page
    assert '<td class="n" data-label="size">1 MB</td>' in page
