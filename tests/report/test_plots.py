from __future__ import annotations

import re

import msgspec
import pytest
from matplotlib.figure import Figure

from tests.report.budgeted import BUDGETED, OF_AN_EARLIER_RUN, make_error, make_outcome
from tests.support import report_parts as parts
from tests.support.measured_cells import make_launches
from tests.support.reports import make_report
from tunegate.artifacts.measurements import Interval, TaskDifference
from tunegate.decide.histogram import histogram
from tunegate.report import plots
from tunegate.report.candidates import ErrorPercent, error_percent, latency_by_error, pareto_front
from tunegate.report.plots import distribution
from tunegate.report.svg import svg


def texts(drawing: str) -> list[str]:
    return re.findall(r"<text[^>]*>([^<]*)</text>", drawing)


def test_the_launches_are_drawn_against_the_margin() -> None:
    report = make_report("slowed")
    shown = texts(plots.launches(report.comparisons[0], 3.0, "x"))
    assert "margin 3%" in shown
    assert "+12.4%  (+10.9% to +13.9%)" in shown
    assert "launch 9" in shown


def test_every_launch_is_a_dot() -> None:
    report = make_report("slowed")
    drawing = plots.launches(report.comparisons[0], 3.0, "x")
    dots = drawing.partition("PathCollection_1")[2].partition('id="x-line2d_')[0]
    assert dots.count("<use") == 9


def test_the_latencies_name_every_side_that_was_measured() -> None:
    finding = make_report("slowed").verdict.findings[0]
    shown = texts(plots.latencies(finding, (), "x"))
    assert {"base", "head", "ONNX Runtime", "4.812 ms", "5.409 ms", "6.304 ms"} <= set(shown)


def test_what_was_not_measured_is_not_drawn() -> None:
    finding = parts.finding("error", "broken")
    nothing = msgspec.structs.replace(
        make_report("slowed").comparisons[0], effects_percent=(), change_percent=None
    )
    assert plots.latencies(finding, (), "x") == ""
    assert plots.waterfall(finding, "x") == ""
    assert plots.launches(nothing, 3.0, "x") == ""


def test_the_waterfall_goes_from_base_to_head_and_sums_up_the_small() -> None:
    differences = tuple(
        TaskDifference(name=f"op{n}", base_ms=1.0, head_ms=1.0 + (20 - n) / 100, source="exact")
        for n in range(12)
    )
    finding = parts.finding("fail", "", differences=differences)
    finding = msgspec.structs.replace(finding, base_ms=20.0, head_ms=21.8)
    shown = texts(plots.waterfall(finding, "x"))
    labels = [each for each in shown if each.startswith(("op", "base", "head", "every"))]
    assert labels == ["base", *(f"op{n}" for n in range(7)), "everything else", "head"]
    assert {"20.00 ms", "+0.6100 ms", "21.80 ms"} < set(shown)


@pytest.mark.parametrize(("low", "high", "is_drawn"), [(-3.0, 1.0, False), (1.0, 3.0, True)])
def test_there_is_no_waterfall_where_the_latency_did_not_move(
    low: float, high: float, *, is_drawn: bool
) -> None:
    change = Interval(low=low, center=(low + high) / 2, high=high)
    finding = make_report("slowed").verdict.findings[0]
    found = msgspec.structs.replace(finding, status="pass", change_percent=change)
    assert bool(plots.waterfall(found, "x")) == is_drawn


def test_there_is_no_waterfall_of_what_was_not_measured() -> None:
    differences = (TaskDifference(name="op", base_ms=1.0, head_ms=2.0, source="exact"),)
    finding = parts.finding("no-baseline", "", differences=differences)
    unmeasured = msgspec.structs.replace(finding, base_ms=None)
    assert plots.waterfall(unmeasured, "x") == ""


def test_the_tuning_curve_tells_time_and_money() -> None:
    outcome = make_report("slowed").outcomes[0]
    assert "spent: time, and USD at 3.6 per hour" in texts(plots.tuning(outcome, 3.6, "x"))
    assert "seconds spent" in texts(plots.tuning(outcome, None, "x"))


@pytest.mark.parametrize("points", [1, 2])
def test_fewer_than_three_points_are_no_curve(points: int) -> None:
    outcome = make_report("slowed").outcomes[0]
    short = msgspec.structs.replace(outcome, curve=outcome.curve[:points])
    assert plots.tuning(short, None, "x") == ""
    assert plots.is_short_curve(short) == (points > 1)
    assert not plots.is_short_curve(outcome)


def test_where_tuning_tried_nothing_there_is_no_curve() -> None:
    outcome = make_report("slowed").outcomes[0]
    idle = tuple(msgspec.structs.replace(task, trials=0) for task in outcome.tasks)
    assert plots.tuning(msgspec.structs.replace(outcome, tasks=idle), None, "x") == ""


def test_every_plot_has_an_axis_with_its_unit() -> None:
    report = make_report("slowed")
    (finding,) = report.verdict.findings
    assert "ms per inference" in texts(plots.latencies(finding, (), "x"))
    assert "ms per inference" in texts(plots.waterfall(finding, "x"))
    launches = texts(plots.launches(report.comparisons[0], 3.0, "x"))
    assert "change of latency, head against base" in launches
    assert "+4%" in launches


def test_every_measured_candidate_is_a_point_with_its_number_in_the_table() -> None:
    drawing = latency_by_error(BUDGETED, "x")
    shown = re.findall(r"<text[^>]*>([^<]*)</text>", drawing)
    assert {"1: ships", "2", "3", "4", "5"} <= set(shown)
    assert "Pareto front: OpenVINO (bf16), OpenVINO" in drawing


def test_a_candidate_whose_error_is_unknown_has_no_point() -> None:
    shown = re.findall(r"<text[^>]*>([^<]*)</text>", latency_by_error(OF_AN_EARLIER_RUN, "x"))
    assert {"1: ships", "2", "3", "4"} <= set(shown)
    assert "5: ships" not in shown


def test_where_all_compute_the_same_numbers_nothing_is_drawn() -> None:
    exact = [msgspec.structs.replace(each, error=None) for each in BUDGETED]
    assert latency_by_error(exact, "x") == ""
    assert latency_by_error((), "x") == ""


def test_both_sides_are_drawn_with_their_percentiles() -> None:
    launches = [
        msgspec.structs.replace(
            launch, base_times=histogram([5.0, 5.1, 6.0]), head_times=histogram([7.0, 9.0])
        )
        for launch in make_launches([0.0] * 4)
    ]
    drawing = distribution(launches, "x")
    shown = re.findall(r"<text[^>]*>([^<]*)</text>", drawing)
    assert {"base", "head", "50%", "99%", "ms per inference; 8 inferences of the head"} <= set(
        shown
    )
    assert distribution(launches, "x") == drawing


def test_nothing_is_drawn_where_no_times_were_kept() -> None:
    assert distribution(make_launches([0.0]), "x") == ""
    assert distribution([], "x") == ""


def test_a_few_slow_inferences_leave_base_and_head_apart() -> None:
    slow = [*[3.0] * 60, 121.0]
    launches = [
        msgspec.structs.replace(
            launch, base_times=histogram(slow), head_times=histogram([each * 1.4 for each in slow])
        )
        for launch in make_launches([0.0] * 4)
    ]
    shown = re.findall(r"<text[^>]*>([^<]*)</text>", distribution(launches, "x"))
    assert {"5", "10", "50", "100"} <= set(shown)


def test_on_the_front_is_whoever_no_other_beats_in_time_and_error() -> None:
    assert [each.title for each in pareto_front(BUDGETED)] == ["OpenVINO (bf16)", "OpenVINO"]


def test_whose_error_is_unknown_is_not_on_the_front() -> None:
    quick = make_outcome("TVM (int8)", 0.1, make_error(3.0, 2.0, 4.0))
    quick = msgspec.structs.replace(quick, error=None, has_unknown_error=True)
    front = pareto_front((quick, *OF_AN_EARLIER_RUN))
    assert [each.title for each in front] == ["OpenVINO (bf16)", "OpenVINO"]


def test_of_two_alike_one_is_on_the_front_and_of_none_measured_none() -> None:
    assert len(pareto_front([make_outcome("A", 1.0), make_outcome("B", 1.0)])) == 1
    assert pareto_front([make_outcome("A", None)]) == ()


def test_an_agreement_is_an_error_the_other_way_round() -> None:
    agreement = make_error(99.0, 98.0, 99.5, what="min-agreement")
    assert error_percent(agreement) == ErrorPercent(1.0, 0.5, 2.0)
    assert error_percent(None) == ErrorPercent()
    assert error_percent(make_error(1.0, 0.5, None)).high is None


def drawn() -> str:
    finding = make_report("slowed").verdict.findings[0]
    return plots.waterfall(finding, "it")


def test_every_colour_is_the_page_s() -> None:
    assert re.findall(r"#[0-9a-fA-F]{6}\b", drawn()) == []
    assert "var(--slower)" in drawn()


def test_every_text_names_its_colour() -> None:
    for style in re.findall(r"<text[^>]*>", drawn()):
        assert "var(--" in style, style


def test_every_id_and_every_reference_carries_the_name() -> None:
    text = drawn()
    ids = set(re.findall(r'\bid="([^"]+)"', text))
    references = set(re.findall(r'href="#([^"]+)"|url\(#([^)]+)\)', text))
    assert all(each.startswith("it-") for each in ids)
    assert {first or second for first, second in references} <= ids


def test_a_description_is_read_aloud_and_escaped() -> None:
    text = svg(Figure(figsize=(1, 1)), name="x", description='<b> & "c"')
    assert "<title>&lt;b&gt; &amp; &quot;c&quot;</title>" in text


def test_a_drawing_tells_no_date_and_no_maker() -> None:
    assert "<metadata>" not in drawn()
    assert "Matplotlib" not in drawn()
