import pytest
from msgspec.structs import replace

from tests.support import report_parts as parts
from tests.support.reports import KINDS, make_report
from tunegate.artifacts.inputs import DrawnInput
from tunegate.artifacts.measurements import Interval
from tunegate.report.headline import (
    described_change,
    headline,
    reason,
    summarize_weaknesses,
    uncovered_line,
    worst_first,
)
from tunegate.report.report_tables import models_table


def test_many_passing_models_are_counted() -> None:
    passing = [parts.finding("pass", "within the margin", model=f"m{n}.onnx") for n in range(3)]
    report = replace(make_report("measured"), verdict=parts.verdict("pass", 0, *passing))
    assert headline(report) == "Pass: 3 of 3 checks passed, none is slower than allowed"


def test_what_else_blocks_is_counted() -> None:
    found = [parts.finding(status, "", model=status) for status in ("error", "fail", "new", "fail")]
    report = replace(make_report("measured"), verdict=parts.verdict("error", 2, *found))
    assert headline(report).startswith("Error: 1 of 4 checks in error, 2 failed; error on cpu: ")


def test_the_numbers_speak_where_the_gate_gave_no_reason() -> None:
    change = Interval(low=10.9, center=12.4, high=13.9)
    finding = parts.finding("fail", "", change_percent=change)
    said = reason(finding, parts.verdict("fail", 1, finding))
    assert said == "+12.4% (+10.9 to +13.9%), the margin is 3%"


@pytest.mark.parametrize("kind", KINDS)
def test_sorting_loses_no_finding(kind: str) -> None:
    verdict = make_report(kind).verdict
    assert sorted(map(repr, worst_first(verdict))) == sorted(map(repr, verdict.findings))


def test_a_change_is_told_with_both_values_and_when_it_counts() -> None:
    told = described_change(parts.policy_change(model="m.onnx", target="cpu"))
    assert told == (
        "policy-change, loosened: gate.margin-percent of m.onnx on cpu: 3 → 60 "
        "(no effect on this verdict, counts once it is merged)"
    )
    assert described_change(parts.policy_change(counts="now")).endswith("3 → 60 (counts now)")


def test_the_headline_counts_what_weakens_the_gate() -> None:
    tighter = parts.policy_change(effect="tightened", counts="now")
    looser = parts.policy_change(effect="changed")
    assert summarize_weaknesses(parts.verdict("pass", 0, policy_changes=(tighter,))) == ""
    told = parts.verdict("pass", 0, policy_changes=(looser, tighter))
    assert summarize_weaknesses(told) == "1 policy-change, named below"
    forbidden = parts.verdict("fail", 1, policy_changes=(looser, looser), policy_fails=True)
    assert summarize_weaknesses(forbidden) == "2 policy-changes, forbidden by gate.policy-changes"


def test_uncovered_files_are_named_and_the_rest_is_counted() -> None:
    assert uncovered_line(()) == ""
    assert (
        uncovered_line(("a.onnx",)) == "No rule of this configuration covers 1 model file: a.onnx."
    )
    many = tuple(f"{number}.onnx" for number in range(60))
    assert uncovered_line(many).endswith("49.onnx and 10 more, all in changes.json.")


def test_the_verdict_names_the_sizes_that_it_speaks_of() -> None:
    inputs = (
        DrawnInput("sr", (), "int64"),
        DrawnInput("ids", (1, 128), "int64"),
        DrawnInput("image", (1, 3, 48, 320), "float32"),
        DrawnInput("mask", (1, 128), "int64"),
        DrawnInput("state", (2, 1, 16), "float32"),
    )
    change = Interval(low=10.9, center=12.4, high=13.9)
    finding = parts.finding("fail", "", change_percent=change)
    finding = replace(finding, inputs=inputs)
    report = replace(make_report("measured"), verdict=parts.verdict("fail", 1, finding))
    assert " on cpu at 1x3x48x320, 1x128 …" in headline(report)
    titles = [column.title for column in models_table([finding]).columns]
    assert titles[:4] == ["Verdict", "Model", "Target", "Size"]


def test_a_reason_that_begins_with_the_model_names_it_once() -> None:
    finding = parts.finding("error", "models/squeezenet.onnx: cut short. Export it again.")
    report = replace(make_report("measured"), verdict=parts.verdict("error", 2, finding))
    assert headline(report) == "Error: models/squeezenet.onnx on cpu: cut short. Export it again"
