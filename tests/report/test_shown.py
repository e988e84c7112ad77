from __future__ import annotations

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support import report_parts as parts
from tests.support.reports import make_report
from tunegate.artifacts.measurements import Interval
from tunegate.artifacts.verdicts import Finding, Status
from tunegate.report.comment import rest_counted, shown_findings


def found(number: int, status: Status = "pass", low: float = -1.0) -> Finding:
    change = Interval(low=low, center=low + 1, high=low + 2)
    return parts.finding(status, "", model=f"m{number}.onnx", change_percent=change)


STATUSES = st.sampled_from(["pass", "fail", "error", "new", "inconclusive", "waived"])


@given(st.lists(STATUSES, max_size=40))
def test_every_finding_is_shown_or_counted(statuses: list[Status]) -> None:
    findings = [found(number, status) for number, status in enumerate(statuses)]
    shown = shown_findings(parts.verdict("pass", 0, *findings))
    assert len(shown.rows) + len(shown.rest) == len(findings)
    assert len(shown.rows) <= 20
    unsettled = sum(status != "pass" for status in statuses)
    assert sum(each.status != "pass" for each in shown.rows) == min(unsettled, 20)


def test_few_checks_are_all_shown() -> None:
    shown = shown_findings(parts.verdict("pass", 0, *(found(n) for n in range(5))))
    assert not shown.rest


def test_of_many_that_passed_those_that_moved_are_shown() -> None:
    still = [found(number) for number in range(9)]
    faster = found(9, low=-9.0)
    shown = shown_findings(parts.verdict("pass", 0, *still, faster))
    assert shown.rows == (faster,)


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
    assert rest_counted(report, (found(0),)) == said


def test_what_did_not_pass_is_not_counted_as_passed() -> None:
    report = make_report("nothing-changed")
    assert rest_counted(report, (found(0, "fail"), found(1))) == (
        "1 more check passed. 1 more check did not pass."
    )
