from collections.abc import Callable

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len

from tests.report.budgeted import BUDGETED, OF_AN_EARLIER_RUN, make_error, make_outcome
from tests.support.golden import Golden
from tests.support.reports import KINDS, WHOLE, make_report
from tunegate.report import units
from tunegate.report.candidates import candidates_table
from tunegate.report.text import render
from tunegate.report.waiver_text import waiver_yaml
from tunegate.wording import milliseconds


@pytest.mark.parametrize("kind", WHOLE)
def test_the_text_reads_as_it_did_when_it_was_last_reviewed(kind: str, golden: Golden) -> None:
    golden.check(f"{kind}.txt", render(make_report(kind)))


@pytest.mark.parametrize("width", [80, 120])
@pytest.mark.parametrize("kind", KINDS)
def test_no_line_is_wider_than_the_terminal(kind: str, width: int) -> None:
    told = render(make_report(kind), width=width).partition("\nwaivers:\n")[0]
    assert max(map(cell_len, told.splitlines())) <= width  # what is pasted is never broken


def test_a_terminal_gets_colours_and_only_ours() -> None:
    text = render(make_report("hostile"), colour=True)
    assert "\x1b[1;31mFail" in text
    assert "\\u001b[31m" in text


def test_every_error_says_its_reason_not_only_the_first() -> None:
    report = make_report("slowed")
    commands = [f"git lfs fetch origin {side * 40} --include=models/m.onnx" for side in "ab"]
    lacks = "; and ".join(f"m.onnx: only its Git LFS pointer is here. Run: {c}" for c in commands)
    findings = tuple(
        msgspec.structs.replace(
            report.verdict.findings[0], model=f"models/{name}.onnx", status="error", reason=reason
        )
        for name, reason in (("lacking", lacks), ("open", "dimension 0 is dynamic"))
    )
    verdict = msgspec.structs.replace(report.verdict, status="error", findings=findings)
    text = render(msgspec.structs.replace(report, verdict=verdict), width=500)
    assert [text.count(command) for command in commands] == [2, 2]  # the headline has them, too
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


def test_what_is_refused_has_the_error_that_refuses_it() -> None:
    untold = msgspec.structs.replace(make_error(0.0, 0.0, None), samples=0)
    refused = (
        make_outcome("A", None, make_error(28.0, 24.3, 44.3), reason="too far off"),
        make_outcome("B", None, untold, reason="no output tells its error"),
    )
    rows = candidates_table((*BUDGETED[:1], *refused)).cells()
    assert [cells[5] for cells in rows[1:]] == ["28% (24.3 to 44.3)", "–"]


def test_an_error_that_this_run_did_not_measure_is_no_exact_one() -> None:
    errors = [cells[5] for cells in candidates_table(OF_AN_EARLIER_RUN).cells()]
    assert errors == ["0.8% (0.7 to 1.1)", "–", "–", "–", "not in this run", "–"]


CHANGES = {None: "–", 12.44: "+12.4%", -3.0: "−3.0%", 0.0: "0.0%", -0.04: "0.0%"}
SHORT = {None: "–", 0: "0 s", 0.31: "0.3 s", 59.6: "1 min"}
DURATIONS = {**SHORT, 112.4: "1 min 52 s", 3725: "1 h 02 min"}
MONEY = {None: "–", 0: "0.00 USD", 2e-5: "under 0.0001 USD", 0.01: "0.0100 USD", 12.5: "12.50 USD"}


@pytest.mark.parametrize(
    ("written", "texts"),
    [(units.percent, CHANGES), (units.duration, DURATIONS), (units.money, MONEY)],
    ids=["a sign unless nothing is left", "no counting", "less than a cent"],
)
def test_a_number_is_written_for_who_reads_it(
    written: Callable[[float | None], str], texts: dict[float | None, str]
) -> None:
    assert {number: written(number) for number in texts} == texts


@given(st.floats(min_value=1e-4, max_value=1e7))
def test_a_time_is_rounded_by_less_than_a_thousandth_or_a_nanosecond(value: float) -> None:
    number, unit = milliseconds(value).split()
    back = float(number) * {"µs": 1e-3, "ms": 1.0, "s": 1e3}[unit]
    assert back == pytest.approx(value, rel=1e-3, abs=1e-6)


@pytest.mark.parametrize(
    ("joules", "text"),
    [
        (None, "–"),
        (0.0, "0 J"),
        (0.000_041_2, "41.2 µJ"),
        (0.25, "250 mJ"),
        (999.0, "999 J"),
        (36_000.0, "36 kJ"),
        (5.25e6, "5.25 MJ"),
        (7.0e9, "7000 MJ"),
    ],
)
def test_energy_is_in_joules(joules: float | None, text: str) -> None:
    assert units.energy(joules) == text
