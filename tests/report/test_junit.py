import re
from xml.etree import ElementTree as ET

import pytest

from tests.support.golden import Golden
from tests.support.reports import KINDS, WHOLE, make_report, with_finding
from tunegate.artifacts.verdicts import CandidateOutcome
from tunegate.report.junit import render


@pytest.mark.parametrize("kind", WHOLE)
def test_the_document_is_as_it_was_when_it_was_last_reviewed(kind: str, golden: Golden) -> None:
    golden.check(f"{kind}.junit.xml", render(make_report(kind)))


@pytest.mark.parametrize(
    ("kind", "tag", "attribute"),
    [
        ("slowed", "failure", "regression"),
        ("undecided", "failure", "inconclusive"),
        ("wrong-numbers", "error", "error"),
        ("unfit", "error", "invalid-env"),
        ("no-baseline", "error", "no-baseline"),
        ("new-model", "skipped", None),
    ],
)
def test_every_status_has_its_element(kind: str, tag: str, attribute: str | None) -> None:
    (case,) = ET.fromstring(render(make_report(kind))).iter("testcase")
    outcome = case[0]
    assert (outcome.tag, outcome.get("type")) == (tag, attribute)
    assert outcome.get("message")


@pytest.mark.parametrize("kind", KINDS)
def test_the_counts_are_those_of_the_cases(kind: str) -> None:
    suite = ET.fromstring(render(make_report(kind)))[0]
    cases = list(suite.iter("testcase"))
    assert int(suite.get("tests", -1)) == len(cases)
    for attribute, tag in (("failures", "failure"), ("errors", "error"), ("skipped", "skipped")):
        assert int(suite.get(attribute, -1)) == len(list(suite.iter(tag)))


def test_rules_that_may_be_loosened_are_skipped_before_the_models() -> None:
    first, *models = ET.fromstring(render(make_report("hostile"))).iter("testcase")
    assert [child.tag for child in first] == ["skipped", "system-out"]
    assert first.get("classname") == "tunegate.policy-change"
    assert len(models) == 1


def test_a_case_says_why_a_runtime_does_not_run_the_model() -> None:
    candidates = (
        CandidateOutcome(candidate="onnxruntime", title="ONNX Runtime", ships=True),
        CandidateOutcome(candidate="tvm", title="TVM", ships=False, reason="no LSTM"),
    )
    report = with_finding(make_report("identical"), runtimes=candidates)
    (said,) = ET.fromstring(render(report)).iter("system-out")
    assert str(said.text).splitlines()[3:] == ["TVM: no LSTM"]


SCHEMA = {
    "testsuites": ({"testsuite"}, {"name", "time", "tests", "failures", "errors"}),
    "testsuite": ({"testcase"}, {"name", "time", "tests", "failures", "errors", "skipped"}),
    "testcase": (
        {"failure", "error", "skipped", "system-out", "system-err"},
        {"name", "time", "classname"},
    ),
    "failure": (set[str](), {"type", "message"}),
    "error": (set[str](), {"type", "message"}),
    "skipped": (set[str](), {"type", "message"}),
    "system-out": (set[str](), set[str]()),
}
"""The children and attributes of each element, of those that Jenkins' junit-10.xsd knows."""


@pytest.mark.parametrize("kind", KINDS)
def test_a_document_holds_nothing_that_jenkins_schema_refuses(kind: str) -> None:
    for element in ET.fromstring(render(make_report(kind))).iter():
        children, attributes = SCHEMA[element.tag]
        assert {child.tag for child in element} <= children
        assert set(element.attrib) <= attributes
        assert re.fullmatch(r"\d+\.\d{3}|", element.get("time", ""))
        if element.tag == "testcase":
            assert element.get("name")
            assert element.get("classname")
            assert len([child for child in element if child.tag != "system-out"]) <= 1
