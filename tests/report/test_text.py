from __future__ import annotations

import msgspec
import pytest
from rich.cells import cell_len

from tests.support.golden import Golden
from tests.support.reports import KINDS, make_report
from tunegate.report.text import render
from tunegate.report.waiver_text import waiver_yaml


@pytest.mark.parametrize(
    "kind", ["slowed", "undecided", "hostile", "nothing-changed", "budget-spent", "loosened"]
)
def test_the_text_reads_as_it_did_when_it_was_last_reviewed(kind: str, golden: Golden) -> None:
    golden.check(f"{kind}.txt", render(make_report(kind)))


@pytest.mark.parametrize("width", [80, 120])
@pytest.mark.parametrize("kind", KINDS)
def test_no_line_is_wider_than_the_terminal(kind: str, width: int) -> None:
    told = render(make_report(kind), width=width).partition("\nwaivers:\n")[0]
    assert max(map(cell_len, told.splitlines())) <= width  # what is pasted is never broken


def test_the_change_is_explained_below_its_table() -> None:
    said = "Change compares paired launches, so it is not Head / Base"
    assert said in render(make_report("slowed"))
    assert said not in render(make_report("new-model"))


def test_a_log_gets_no_escape_sequences() -> None:
    assert "\x1b" not in render(make_report("hostile"))


def test_a_terminal_gets_colours_and_only_ours() -> None:
    text = render(make_report("hostile"), colour=True)
    assert "\x1b[1;31mFail" in text
    assert "\\u001b[31m" in text


def test_every_error_says_its_reason_not_only_the_first() -> None:
    report = make_report("slowed")
    findings = tuple(
        msgspec.structs.replace(
            report.verdict.findings[0], model=f"models/{name}.onnx", status="error", reason=reason
        )
        for name, reason in (("cut", "not an ONNX file"), ("open", "dimension 0 is dynamic"))
    )
    verdict = msgspec.structs.replace(report.verdict, status="error", findings=findings)
    text = render(msgspec.structs.replace(report, verdict=verdict))
    assert "  models/cut.onnx on cpu: not an ONNX file\n" in text
    assert "  models/open.onnx on cpu: dimension 0 is dynamic\n" in text


def test_the_waiver_is_printed_as_it_is_pasted() -> None:
    report = make_report("slowed")
    assert report.waiver_offer is not None
    assert f"\n{waiver_yaml(report.waiver_offer)}\n" in render(report, width=40)


def test_many_waivers_are_told_where_they_lie() -> None:
    report = make_report("slowed")
    assert report.waiver_offer is not None
    many = msgspec.structs.replace(report.waiver_offer, waivers=report.waiver_offer.waivers * 4)
    told = render(msgspec.structs.replace(report, waiver_offer=many))
    assert "4 waivers to paste are in report.md, in the fold “Accept it with a waiver”" in told
    assert "ceiling-percent" not in told
