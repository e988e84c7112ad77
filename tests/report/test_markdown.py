import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support import report_parts as parts
from tests.support.reports import make_report
from tunegate.artifacts.measurements import Interval
from tunegate.artifacts.verdicts import Finding, Status
from tunegate.report import comment, table
from tunegate.report.cost_table import SpendingRow
from tunegate.report.markdown import markdown_table
from tunegate.report.operators import tuned_rows
from tunegate.report.report_tables import spending_table

NUMBERS = table.ReportTable(
    (table.text_column("a", lambda row: row[0]), table.number_column("b", lambda row: row[1])),
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
        table.Identifier("a|b"),
        table.StatusWord("fail"),
        table.ChangeInterval(Interval(low=1.0, center=2.0, high=3.0)),
        table.ChangeInterval(None),
        table.SignedTime(0.5, share=0.82),
    )
    columns = tuple(
        table.text_column(str(at), lambda row, at=at: row[at])  # type: ignore[misc]
        for at in range(len(cells))
    )
    *_, row = markdown_table(table.ReportTable(columns, [cells])).splitlines()
    assert row.split(" | ") == [
        "| <code>a&#124;b</code>",
        "❌ Fail",
        "**+2.0%**<br>+1.0\u00a0to\u00a0+3.0%",
        "–",
        "+0.5000\u00a0ms\u00a0(82%) |",
    ]


REPORT = make_report("slowed")


def test_a_task_that_got_faster_tells_both_times_of_a_call() -> None:
    faster, *others = comment.comment_tasks_table(tuned_rows(REPORT)).cells()
    assert faster[3] == "3.880 ms → 0.6600 ms"
    assert others[-1][3] == "21.00 µs"


def test_a_task_that_was_never_timed_has_no_time() -> None:
    row = msgspec.structs.replace(tuned_rows(REPORT)[0], before_ms=None, best_ms=None)
    assert comment.comment_tasks_table([row]).cells()[0][3] == "–"


def test_tasks_of_which_the_same_is_told_are_one_row() -> None:
    row = msgspec.structs.replace(tuned_rows(REPORT)[0], side=None, stopped="shared")
    rows = [msgspec.structs.replace(row, name=f"conv{n}") for n in (0, 0, *range(1, 10))]
    other = msgspec.structs.replace(row, name="conv1", trials=row.trials + 1)
    first, second = comment.merge_alike([*rows[:3], other, *rows[3:]])
    assert first.label == "conv0, conv1, conv2, conv3 and 6 more (11 tasks)"
    assert second == other


def test_energy_takes_the_place_of_shares() -> None:
    row = SpendingRow("search", None, 1.0, 0.5, 0.1)
    assert "Share" in [
        column.title for column in comment.narrow_table(spending_table([row]), "Share").columns
    ]
    counted = msgspec.structs.replace(row, joules=5.0)
    titles = [
        column.title for column in comment.narrow_table(spending_table([counted]), "Share").columns
    ]
    assert titles == ["What", "Candidates", "Worker time", "Cost", "Energy"]


def finding(number: int, status: Status = "pass", low: float = -1.0) -> Finding:
    change = Interval(low=low, center=low + 1, high=low + 2)
    return parts.finding(status, "", model=f"m{number}.onnx", change_percent=change)


STATUSES = st.sampled_from(["pass", "fail", "error", "new", "inconclusive", "waived"])


@given(st.lists(STATUSES, max_size=40))
def test_every_finding_is_shown_or_counted(statuses: list[Status]) -> None:
    findings = [finding(number, status) for number, status in enumerate(statuses)]
    shown = comment.shown_findings(parts.verdict("pass", 0, *findings))
    assert len(shown.rows) + len(shown.rest) == len(findings)
    assert len(shown.rows) <= 20
    unsettled = sum(status != "pass" for status in statuses)
    assert sum(each.status != "pass" for each in shown.rows) == min(unsettled, 20)


def test_of_many_that_passed_those_that_moved_are_shown() -> None:
    still = [finding(number) for number in range(9)]
    faster = finding(9, low=-9.0)
    assert comment.shown_findings(parts.verdict("pass", 0, *still, faster)).rows == (faster,)


@pytest.mark.parametrize(
    ("unchanged", "said"),
    [
        ((), "1 more check passed."),
        (("a",), "1 more check passed. 1 configured model is not touched."),
        (("a", "b"), "1 more check passed. 2 configured models are not touched."),
    ],
)
def test_the_rest_is_counted_with_its_plurals(unchanged: tuple[str, ...], said: str) -> None:
    report = make_report("measured")
    changes = msgspec.structs.replace(report.changes, unchanged=unchanged)
    report = msgspec.structs.replace(report, changes=changes)
    assert comment.rest_sentence(report, (finding(0),)) == said


def test_what_did_not_pass_is_not_counted_as_passed() -> None:
    report = make_report("nothing-changed")
    assert comment.rest_sentence(report, (finding(0, "fail"), finding(1))) == (
        "1 more check passed. 1 more check did not pass."
    )
