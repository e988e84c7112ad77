import msgspec
from hypothesis import given
from hypothesis import strategies as st

from tests.support.measured_cells import make_launches, make_measurement
from tests.support.reports import make_report
from tunegate.artifacts.histogram import Histogram
from tunegate.artifacts.measurements import Interval
from tunegate.report import plots
from tunegate.report.markdown import Section, fit_sections, sections_of

LINES = st.text(alphabet="ab |-#\n", min_size=1, max_size=300).filter(str.strip)
TABLE = "\n".join(["| a |", "| --- |", *(f"| {n:03} |" for n in range(100))])


@given(st.lists(LINES, min_size=1, max_size=8), st.integers(min_value=400, max_value=2000))
def test_a_text_keeps_its_limit_and_says_what_it_leaves_out(texts: list[str], limit: int) -> None:
    text = fit_sections([Section(rank, text) for rank, text in enumerate(texts)], limit)
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
    text = fit_sections(sections, 400)
    assert text.startswith("### Pass\n\n#### Models\n\nm\n\n*Left out here, for its length:* ")
    assert "Tasks (9); Tuning. *The whole report is `report.html`" in text


def test_a_table_loses_whole_rows_and_says_how_many() -> None:
    text = fit_sections([Section(0, "### Pass"), Section(1, f"#### Models\n\n{TABLE}")], 500)
    rows = [line for line in text.splitlines() if line.startswith("| 0")]
    assert rows == [f"| {n:03} |" for n in range(len(rows))]
    assert 10 < len(rows) < 60
    assert f"Models ({100 - len(rows)} rows)" in text


def test_a_fold_stays_closed_around_the_rows_that_are_left() -> None:
    fold = f"<details><summary>Tasks</summary>\n\n{TABLE}\n\n</details>"
    text = fit_sections([Section(0, "### Pass"), Section(1, fold)], 600)
    assert text.count("<details>") == text.count("</details>") == 1
    assert "| 000 |\n" in text


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


REPORT = make_report("slowed")
(FINDING,) = REPORT.verdict.findings


def test_a_reference_is_told_apart_from_what_decides() -> None:
    assert "decides nothing" in plots.of_latencies(FINDING)
    alone = msgspec.structs.replace(FINDING, reference_ms=None)
    assert "ONNX Runtime" not in plots.of_latencies(alone)


def test_the_slow_end_of_both_sides_is_told() -> None:
    times = Histogram(first=100, counts=(98, 1, 1))
    (launch,) = make_launches([0.0])
    launch = msgspec.structs.replace(launch, base_times=times, head_times=times)
    assert "99% of the inferences took at most 2.7" in plots.of_distribution([launch])
    assert plots.of_distribution([]) == ""


def test_layers_tell_how_they_were_timed_or_why_they_were_not() -> None:
    assert "by a profile of each build" in plots.of_layers(FINDING, None, 3.0)
    alone = tuple(msgspec.structs.replace(each, is_alone=True) for each in FINDING.differences)
    by_tuning = msgspec.structs.replace(FINDING, differences=alone)
    assert "each alone, by tuning" in plots.of_layers(by_tuning, None, 3.0)
    assert "each alone, by tuning" in plots.of_waterfall(by_tuning)
    still = Interval(low=0.0, center=0.1, high=0.2)
    unmoved = msgspec.structs.replace(FINDING, differences=(), change_percent=still)
    assert "half the margin or more" in plots.of_layers(unmoved, make_measurement((0.0,)), 3.0)
