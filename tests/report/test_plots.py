import re

from msgspec.structs import replace

from tests.report.budgeted import BUDGETED, OF_AN_EARLIER_RUN, make_error
from tests.support import report_parts as parts
from tests.support.measured_cells import make_launches
from tests.support.reports import make_report
from tunegate.artifacts.histogram import histogram
from tunegate.artifacts.measurements import Launch
from tunegate.report import plots
from tunegate.report.candidates import ErrorPercent, error_percent, latency_by_error, pareto_front
from tunegate.report.plots import distribution
from tunegate.report.svg import INK, Axis, Plot, Scale, Tick


def texts(drawing: str) -> list[str]:
    return re.findall(r"<text[^>]*>([^<]*)</text>", drawing)


def test_what_was_not_measured_is_not_drawn() -> None:
    finding = parts.finding("error", "broken")
    nothing = replace(make_report("slowed").comparisons[0], effects_percent=(), change_percent=None)
    assert plots.latencies(finding, ()) == ""
    assert plots.waterfall(finding) == ""
    assert plots.launches(nothing, 3.0) == ""


def test_the_tuning_curve_tells_time_and_money() -> None:
    outcome = make_report("slowed").outcomes[0]
    assert "spent: time, and USD at 3.6 per hour" in texts(plots.tuning(outcome, 3.6))
    assert "seconds spent" in texts(plots.tuning(outcome, None))


def test_every_measured_candidate_is_a_point_with_its_number_in_the_table() -> None:
    drawing = latency_by_error(BUDGETED)
    assert {"1: ships", "2", "3", "4", "5"} <= {*texts(drawing)}
    assert "Pareto front: OpenVINO (bf16), OpenVINO" in drawing


def test_a_candidate_whose_error_is_unknown_has_no_point() -> None:
    shown = texts(latency_by_error(OF_AN_EARLIER_RUN))
    assert {"1: ships", "2", "3", "4"} <= set(shown)
    assert "5: ships" not in shown


def test_where_all_compute_the_same_numbers_nothing_is_drawn() -> None:
    assert latency_by_error([replace(each, error=None) for each in BUDGETED]) == ""
    assert latency_by_error(()) == ""


def timed(base_ms: list[float], head_ms: list[float]) -> list[Launch]:
    times = {"base_times": histogram(base_ms), "head_times": histogram(head_ms)}
    return [replace(launch, **times) for launch in make_launches([0.0] * 4)]


def test_both_sides_are_drawn_with_their_percentiles() -> None:
    launches = timed([5.0, 5.1, 6.0], [7.0, 9.0])
    drawing = distribution(launches)
    told = {"base", "head", "50%", "99%", "ms per inference; 8 inferences of the head"}
    assert told <= {*texts(drawing)}
    assert distribution(launches) == drawing


def test_a_few_slow_inferences_leave_base_and_head_apart() -> None:
    slow = [*[3.0] * 60, 121.0]
    launches = timed(slow, [each * 1.4 for each in slow])
    shown = texts(distribution(launches))
    assert {"5", "10", "50", "100"} <= set(shown)


def test_on_the_front_is_whoever_no_other_beats_in_time_and_error() -> None:
    assert [each.title for each in pareto_front(BUDGETED)] == ["OpenVINO (bf16)", "OpenVINO"]


def test_an_agreement_is_an_error_the_other_way_round() -> None:
    agreement = make_error(99.0, 98.0, 99.5, what="min-agreement")
    assert error_percent(agreement) == ErrorPercent(1.0, 0.5, 2.0)
    assert error_percent(None) == ErrorPercent()
    assert error_percent(make_error(1.0, 0.5, None)).high is None


UNIT = Axis(Scale(0, 1))


def drawn() -> str:
    return plots.waterfall(make_report("slowed").verdict.findings[0])


def test_every_colour_is_the_page_s() -> None:
    colours = re.findall(r'(?:fill|stroke)="([^"]+)"', drawn())
    assert {each for each in colours if not each.startswith("var(--")} <= {"none"}
    assert "var(--slower)" in colours


def test_what_is_written_is_escaped() -> None:
    plot = Plot((1, 1), Axis(Scale(0, 1), [Tick(0, "<i>")], "<x>"), UNIT, legend=[("<l>", INK)])
    plot.text((0.5, 0.5), "<t>")
    plot.edge_text("left", 0.5, "<e>")
    text = plot.svg('<b> & "c"')
    assert "<title>&lt;b&gt; &amp; &quot;c&quot;</title>" in text
    assert re.findall(r"&lt;(\w)&gt;</text>", text) == ["i", "x", "l", "t", "e"]
    assert not re.search(r"<(b|i|x|l|t|e)>", text)


def test_a_text_that_would_leave_the_drawing_stands_before_its_point() -> None:
    plot = Plot((2, 1), UNIT, UNIT)
    for at in (0.1, 1.0):
        plot.text((at, 0.5), "margin 100%", anchor="start", shift=(4, 0))
    assert re.findall(r'text-anchor="(\w+)"[^>]*>margin', plot.svg("")) == ["start", "end"]
