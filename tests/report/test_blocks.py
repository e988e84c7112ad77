from __future__ import annotations

from tunegate.artifacts.measurements import Interval
from tunegate.report.markdown import fold, markdown_table
from tunegate.report.table import (
    ChangeInterval,
    Column,
    Identifier,
    ReportTable,
    SignedTime,
    StatusWord,
    number_column,
    text_column,
)

NUMBERS = ReportTable(
    (
        text_column("a", lambda row: row[0]),
        number_column("b", lambda row: row[1]),
    ),
    [("x y", "1 ms"), ("<b>", "2 ms")],
)


def test_numbers_are_aligned_to_the_right_and_keep_their_unit() -> None:
    assert markdown_table(NUMBERS).splitlines() == [
        "| a | b |",
        "| --- | --: |",
        "| x y | 1\u00a0ms |",
        "| &#60;b&#62; | 2\u00a0ms |",
    ]


def test_every_kind_of_cell_is_drawn() -> None:
    cells = (
        Identifier("a|b"),
        StatusWord("fail"),
        ChangeInterval(Interval(low=1.0, center=2.0, high=3.0)),
        ChangeInterval(None),
        SignedTime(0.5, share=0.82),
    )
    columns = tuple(text_column(str(at), lambda row, at=at: row[at]) for at in range(len(cells)))  # type: ignore[misc]
    *_, row = markdown_table(ReportTable(columns, [cells])).splitlines()
    assert row.split(" | ") == [
        "| <code>a&#124;b</code>",
        "❌ Fail",
        "**+2.0%**<br>+1.0\u00a0to\u00a0+3.0%",
        "–",
        "+0.5000\u00a0ms\u00a0(82%) |",
    ]


def test_what_belongs_under_a_column_stands_below_it_in_its_cell() -> None:
    columns: tuple[Column[tuple[str, str]], ...] = (
        text_column("Task", lambda row: row[0]),
        Column(title="Target", cell=lambda row: row[1], under="Task"),
    )
    head, _, *rows = markdown_table(ReportTable(columns, [("a", "cpu"), ("b", "")])).splitlines()
    assert head == "| Task |"
    assert rows == ["| a<br>cpu |", "| b |"]


def test_a_fold_leaves_room_for_markdown_inside() -> None:
    assert fold("More", "**x**").splitlines()[1:3] == ["", "**x**"]
