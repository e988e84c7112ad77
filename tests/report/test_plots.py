from __future__ import annotations

import re

import msgspec
import pytest

from tests.support import report_parts as parts
from tests.support.reports import make_report
from tunegate.artifacts.measurements import Interval, TaskDifference
from tunegate.report import plots


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
