from __future__ import annotations

import msgspec
import pytest

from tests.support import report_parts as parts
from tests.support.reports import KINDS, make_report
from tunegate.artifacts.measurements import Interval
from tunegate.report.headline import headline, reason, worst_first


@pytest.mark.parametrize(
    ("kind", "said"),
    [
        (
            "identical",
            "Pass: models/squeezenet.onnx on cpu: identical build on both sides, not measured",
        ),
        ("nothing-changed", "Pass: no configured model changed (1 model, none measured)"),
        (
            "new-model",
            "New: models/squeezenet.onnx on cpu: no base to compare with: built and checked",
        ),
        (
            "many",
            "Error: 2 of 132 checks in error; models/family_3/net_03.onnx on cpu: "
            + make_report("wrong-numbers").verdict.findings[0].reason,
        ),
    ],
)
def test_the_headline_says_the_verdict_and_why(kind: str, said: str) -> None:
    assert headline(make_report(kind)) == said


def test_many_passing_models_are_counted() -> None:
    passing = [parts.finding("pass", "within the margin", model=f"m{n}.onnx") for n in range(3)]
    report = msgspec.structs.replace(
        make_report("measured"), verdict=parts.verdict("pass", 0, *passing)
    )
    assert headline(report) == "Pass: 3 of 3 checks passed, none is slower than allowed"


def test_the_numbers_speak_where_the_gate_gave_no_reason() -> None:
    change = Interval(low=10.9, center=12.4, high=13.9)
    finding = parts.finding("fail", "", change_percent=change)
    said = reason(finding, parts.verdict("fail", 1, finding))
    assert said == "+12.4% (+10.9 to +13.9%), the margin is 3%"


@pytest.mark.parametrize("kind", KINDS)
def test_sorting_loses_no_finding(kind: str) -> None:
    verdict = make_report(kind).verdict
    assert sorted(map(repr, worst_first(verdict))) == sorted(map(repr, verdict.findings))


def test_of_two_failures_the_slower_comes_first() -> None:
    slow, slower = (
        parts.finding("fail", "", model=name, change_percent=Interval(low=1, center=by, high=9))
        for name, by in (("a.onnx", 4.0), ("b.onnx", 8.0))
    )
    assert worst_first(parts.verdict("fail", 1, slow, slower)) == (slower, slow)
