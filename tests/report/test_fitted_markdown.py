from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from tunegate.report.markdown import Section, fitted, fitted_text, sections_of

LINES = st.text(alphabet="ab |-#\n", min_size=1, max_size=300).filter(str.strip)
TABLE = "\n".join(["| a |", "| --- |", *(f"| {n:03} |" for n in range(100))])


@given(st.lists(LINES, min_size=1, max_size=8), st.integers(min_value=400, max_value=2000))
def test_a_text_keeps_to_its_limit_and_says_what_it_leaves_out(
    texts: list[str], limit: int
) -> None:
    sections = [Section(rank, text) for rank, text in enumerate(texts)]
    text = fitted(sections, limit)
    assert len(text) <= limit
    whole = "\n\n".join(texts) + "\n"
    assert text == whole or "Left out here" in text or text.endswith("…\n")


def test_the_least_important_goes_first_and_the_order_stays() -> None:
    sections = [
        Section(0, "### Pass"),
        Section(3, "#### Tuning\n\n" + "t" * 300),
        Section(1, "#### Models\n\nm"),
        Section(2, "<details><summary>Tasks (9)</summary>\n\n" + "x" * 300 + "\n\n</details>"),
    ]
    text = fitted(sections, 400)
    assert text.startswith("### Pass\n\n#### Models\n\nm\n\n*Left out here, for its length:* ")
    assert "Tasks (9); Tuning. *The whole report is `report.html`" in text


def test_a_table_loses_whole_rows_and_says_how_many() -> None:
    text = fitted([Section(0, "### Pass"), Section(1, f"#### Models\n\n{TABLE}")], 500)
    rows = [line for line in text.splitlines() if line.startswith("| 0")]
    assert rows == [f"| {n:03} |" for n in range(len(rows))]
    assert 10 < len(rows) < 60
    assert f"Models ({100 - len(rows)} rows)" in text


def test_a_fold_stays_closed_around_the_rows_that_are_left() -> None:
    fold = f"<details><summary>Tasks</summary>\n\n{TABLE}\n\n</details>"
    text = fitted([Section(0, "### Pass"), Section(1, fold)], 600)
    assert text.count("<details>") == text.count("</details>") == 1
    assert "| 000 |\n" in text


def test_the_first_section_alone_is_cut_itself() -> None:
    assert fitted([Section(0, "x" * 100), Section(1, "y")], 20) == "x" * 18 + "…\n"


def test_a_text_is_divided_at_its_headings_and_folds() -> None:
    fold = "<details><summary>Tasks</summary>\n\n| a |\n\n</details>"
    text = f"### Pass\n\n[This run](https://x)\n\n#### Steps\n\n- one\n\n{fold}\n\nend\n"
    assert [each.text for each in sections_of(text)] == [
        "### Pass",
        "[This run](https://x)",
        "#### Steps\n\n- one",
        fold,
        "end",
    ]


def test_a_text_that_fits_stays_as_it_is() -> None:
    assert fitted_text("a\n\n\nb", 10) == "a\n\n\nb"
    assert "end" not in fitted_text("### Pass\n\n" + "x" * 500 + "\n\nend", 300)
