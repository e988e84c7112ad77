from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from tunegate.render.blocks import CUT, Column, fitted, fold, table

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


def test_numbers_are_aligned_to_the_right_and_keep_their_unit() -> None:
    assert table([Column("a"), Column("b", number=True)], [["x y", "1 ms"]]).splitlines() == [
        "| a | b |",
        "| --- | --: |",
        "| x y | 1\u00a0ms |",
    ]


def test_a_fold_leaves_room_for_markdown_inside() -> None:
    assert fold("More", "**x**").splitlines()[1:3] == ["", "**x**"]
