from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from tunegate.artifacts.measurements import Interval
from tunegate.render.blocks import CUT, fitted, fold, markdown_table
from tunegate.render.tables.table import (
    ChangeInterval,
    Identifier,
    ReportTable,
    SignedTime,
    StatusWord,
    number_column,
    text_column,
)

SECTIONS = st.lists(st.text(alphabet="ab\n", min_size=1, max_size=300), min_size=1, max_size=8)


@given(SECTIONS, st.integers(min_value=200, max_value=2000))
def test_a_cut_text_keeps_to_its_limit_and_says_that_it_is_cut(
    sections: list[str], limit: int
) -> None:
    text = fitted(sections, limit)
    assert len(text) <= limit
    whole = "\n\n".join(sections) + "\n"
    assert text == whole or CUT in text or text.endswith("…\n")


def test_a_text_is_cut_where_a_section_ends() -> None:
    assert fitted(["first", "second" * 50, "third"], 120) == f"first\n\n{CUT}\n"


def test_a_first_section_that_is_too_long_is_cut_itself() -> None:
    assert fitted(["x" * 100, "y"], 20) == "x" * 18 + "…\n"


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
        SignedTime(0.5),
    )
    columns = tuple(text_column("", lambda row, at=at: row[at]) for at in range(len(cells)))  # type: ignore[misc]
    *_, row = markdown_table(ReportTable(columns, [cells])).splitlines()
    assert row.split(" | ") == [
        "| <code>a&#124;b</code>",
        "❌ Fail",
        "**+2.0%**<br>+1.0\u00a0to\u00a0+3.0%",
        "–",
        "+0.5000\u00a0ms |",
    ]


def test_a_fold_leaves_room_for_markdown_inside() -> None:
    assert fold("More", "**x**").splitlines()[1:3] == ["", "**x**"]
