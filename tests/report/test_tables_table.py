from __future__ import annotations

from tunegate.report.table import ReportTable, number_column, text_column

TABLE = ReportTable(
    (
        text_column("name", str),
        number_column("square", lambda row: str(row * row)),
    ),
    [2, 3],
)


def test_a_row_has_a_cell_for_every_column() -> None:
    assert TABLE.cells() == [["2", "4"], ["3", "9"]]


def test_a_column_that_a_medium_has_no_room_for_is_left_out() -> None:
    narrow = TABLE.without("name")
    assert [column.title for column in narrow.columns] == ["square"]
    assert narrow.cells() == [["4"], ["9"]]
