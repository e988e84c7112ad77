import json
from importlib.metadata import version
from typing import Any

import pytest

from tests.support.golden import Golden
from tests.support.reports import KINDS, WHOLE, make_report
from tunegate.report.sarif import render


def results(kind: str) -> list[dict[str, Any]]:
    (run,) = json.loads(render(make_report(kind)))["runs"]
    return list(run["results"])


@pytest.mark.parametrize("kind", WHOLE)
def test_the_log_is_as_it_was_when_it_was_last_reviewed(kind: str, golden: Golden) -> None:
    text = render(make_report(kind)).replace(
        f'"version": "{version("tunegate")}"', '"version": "X"'
    )
    golden.check(f"{kind}.sarif.json", text)


@pytest.mark.parametrize(
    ("kind", "rule", "level"),
    [
        ("slowed", "regression", "error"),
        ("wrong-numbers", "build-error", "error"),
        ("undecided", "latency-undecided", "warning"),
        ("unfit", "machine-unfit", "warning"),
        ("no-baseline", "no-baseline", "warning"),
    ],
)
def test_what_blocks_a_merge_is_a_result(kind: str, rule: str, level: str) -> None:
    (result,) = results(kind)
    assert (result["ruleId"], result["level"]) == (rule, level)


@pytest.mark.parametrize("kind", KINDS)
def test_every_result_points_at_its_rule(kind: str) -> None:
    (run,) = json.loads(render(make_report(kind)))["runs"]
    rules = run["tool"]["driver"]["rules"]
    assert all(rules[each["ruleIndex"]]["id"] == each["ruleId"] for each in run["results"])


def test_github_gets_the_full_description_that_it_requires_of_a_rule() -> None:
    (run,) = json.loads(render(make_report("slowed")))["runs"]
    rules = run["tool"]["driver"]["rules"]
    described = [each["fullDescription"]["text"] for each in rules]
    assert all(
        text.startswith(each["shortDescription"]["text"])
        for each, text in zip(rules, described, strict=True)
    )
    assert len(set(described)) == len(rules)


def test_loosened_rules_come_first_and_stricter_ones_are_no_result() -> None:
    found = results("loosened")
    assert [(each["ruleId"], each["level"]) for each in found] == [("policy-change", "error")] * 3
    assert len({each["partialFingerprints"]["policyKey/v1"] for each in found}) == 3
    first = results("hostile")[0]
    assert (first["ruleId"], first["level"]) == ("policy-change", "warning")


def test_the_same_trouble_has_the_same_fingerprint_however_large_it_is() -> None:
    slowed, hostile = results("slowed")[0], results("hostile")[0]
    assert slowed["partialFingerprints"] == results("slowed")[0]["partialFingerprints"]
    assert slowed["partialFingerprints"] != hostile["partialFingerprints"]
