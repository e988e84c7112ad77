"""The plots of the HTML report, each as inline SVG no wider than a phone."""

import itertools
import math
from collections.abc import Iterator, Sequence

from tunegate.artifacts.histogram import Histogram, merged_histogram
from tunegate.artifacts.measurements import CellMeasurement, Comparison, Launch
from tunegate.artifacts.outcomes import TuningOutcome
from tunegate.artifacts.verdicts import Finding
from tunegate.decide.decision import EXPLAINED
from tunegate.report import svg
from tunegate.report.escape import visible
from tunegate.report.operators import Part, parts
from tunegate.report.units import difference_ms, percent, share
from tunegate.wording import milliseconds, plural

WIDTH_INCHES = 4.8
MAX_ROWS = 20
"""Launches for which a plot grows; more are drawn closer together."""
PLOTTED_OPERATORS = 7
NAME_CHARACTERS = 34
_FEWEST_POINTS = 3
_AN_INFERENCE = "ms per inference"


def launches(comparison: Comparison, margin_percent: float) -> str:
    """Returns every launch's effect, and the deciding interval, against the margin."""
    effects = comparison.effects_percent
    interval = comparison.change_percent
    if not effects or interval is None:
        return ""
    rows = len(effects)
    x = svg.padded_scale([0.0, margin_percent, interval.low, interval.high, *effects], 0.12)
    ticks = [svg.Tick(at, percent(at).replace(".0%", "%")) for at in svg.few_ticks(x, 5)]
    plot = svg.Plot(
        (WIDTH_INCHES, 1.5 + 0.18 * min(rows, MAX_ROWS)),
        svg.Axis(x, ticks, "change of latency, head against base", has_grid=True),
        svg.Axis(
            svg.Scale(-3.0, rows + 1.6), [svg.Tick(rows, "launch 1"), svg.Tick(1, f"launch {rows}")]
        ),
    )
    plot.vertical(0, svg.MUTED, 0.8)
    plot.vertical(margin_percent, svg.SLOWER, 1.0, "4 2")
    for row, effect in zip(range(rows, 0, -1), effects, strict=True):
        plot.dot((effect, row), svg.SLOWER if effect > margin_percent else svg.BASE, 2.4)
    plot.line([(interval.low, -0.7), (interval.high, -0.7)], svg.INK, 2.4)
    plot.diamond((interval.center, -0.7), svg.INK, 4)
    text = f"{percent(interval.center)}  ({percent(interval.low)} to {percent(interval.high)})"
    plot.text((interval.center, -2.1), text, is_bold=True)
    margin = f"margin {margin_percent:g}%"
    plot.text((margin_percent, rows + 0.9), margin, anchor="start", shift=(4, 0), colour=svg.SLOWER)
    return plot.svg(f"Effect of each launch; together {percent(interval.center)}")


def latencies(finding: Finding, measured: Sequence[Launch]) -> str:
    """Returns base, head and ONNX Runtime side by side, with a dot per launch."""
    bars = [
        ("base", finding.base_ms, svg.BASE, [launch.base_ms for launch in measured]),
        ("head", finding.head_ms, svg.HEAD, [launch.head_ms for launch in measured]),
        ("ONNX Runtime", finding.reference_ms, svg.REFERENCE_COLOUR, []),
    ]
    drawn_bars = [(label, value, colour, dots) for label, value, colour, dots in bars if value]
    if not drawn_bars:
        return ""
    longest = max(max((value, *dots)) for _, value, _, dots in drawn_bars)
    x = svg.Scale(0, longest * 1.32)
    plot = svg.Plot(
        (WIDTH_INCHES, 0.75 + 0.42 * len(drawn_bars)),
        svg.Axis(x, svg.numbered_ticks(svg.few_ticks(x, 5)), _AN_INFERENCE, has_grid=True),
        svg.Axis(
            svg.Scale(len(drawn_bars) - 0.5, -0.5),
            [svg.Tick(row, label) for row, (label, *_) in enumerate(drawn_bars)],
        ),
    )
    for row, (_, value, colour, dots) in enumerate(drawn_bars):
        plot.box((0, row - 0.31), (value, row + 0.31), colour, 0.85)
        for dot in dots:
            plot.dot((dot, row), svg.INK, 1.4)
        plot.text((max((value, *dots)), row), milliseconds(value), anchor="start", shift=(7, 0))
    return plot.svg("Latency of base and head")


def waterfall(finding: Finding) -> str:
    """Returns a waterfall from base to head, operator by operator, the largest difference first.
    The rest of the change is the other operators, and the machine's drift between measuring the
    model and its operators. '' if the latency did not move: the bars would be noise."""
    every = parts(finding.differences)
    change = finding.change_percent
    has_moved = change is None or change.excludes_zero
    if not every or finding.base_ms is None or finding.head_ms is None or not has_moved:
        return ""
    start, layers = finding.base_ms, every[:PLOTTED_OPERATORS]
    steps = [(visible(part.name, NAME_CHARACTERS), part.difference_ms) for part in layers]
    unexplained_ms = finding.head_ms - start - sum(part.difference_ms for part in layers)
    steps.append(("everything else", unexplained_ms))
    largest = ", ".join(f"{visible(p.name)} {difference_ms(p.difference_ms)}" for p in layers[:3])
    return _drawn_steps(start, steps).svg(f"Difference by operator: {largest}")


def _drawn_steps(start: float, steps: Sequence[tuple[str, float]]) -> svg.Plot:
    """Draws two totals as dots and the differences as bars between them, each under its name."""
    edges = [start, *itertools.accumulate((step for _, step in steps), initial=start)]
    room = (max(edges) - min(edges)) * 0.08 or abs(start) * 0.05 or 1.0
    x = svg.Scale(min(edges) - room, max(edges) + room)
    plot = svg.Plot(
        (WIDTH_INCHES, 0.62 + 0.42 * (len(steps) + 2)),
        svg.Axis(x, svg.numbered_ticks(svg.few_ticks(x, 5)), _AN_INFERENCE, has_grid=True),
        svg.Axis(svg.Scale(len(steps) + 1.6, -0.9)),
    )
    at = start
    _total(plot, 0, "base", start, svg.BASE)
    for row, (label, difference) in enumerate(steps, start=1):
        plot.line([(at, row - 1), (at, row)], svg.GRID, 0.8)
        colour = svg.SLOWER if difference > 0 else svg.FASTER
        plot.box((at, row - 0.17), (at + difference, row + 0.17), colour)
        _label(plot, row, label, difference_ms(difference))
        at += difference
    _total(plot, len(steps) + 1, "head", at, svg.HEAD)
    return plot


def _total(plot: svg.Plot, row: int, label: str, value: float, colour: str) -> None:
    plot.dot((value, row), colour, 4, edge=svg.SURFACE)
    _label(plot, row, label, milliseconds(value))


def _label(plot: svg.Plot, row: int, label: str, value: str) -> None:
    """Writes a name above its bar at the left, the figure at the right."""
    plot.edge_text("left", row - 0.3, label)
    plot.edge_text("right", row - 0.3, value)


def tuning(outcome: TuningOutcome, usd_per_hour: float | None) -> str:
    """Returns the estimated end-to-end latency over the seconds and money spent; '' if tuning tried
    nothing, or too little."""
    if len(outcome.curve) < _FEWEST_POINTS or not _is_tried(outcome):
        return ""
    (_, first_ms), *_, (seconds, last_ms) = outcome.curve
    x = svg.padded_scale([at for at, _ in outcome.curve], 0.05)
    y = svg.Scale(0, max(ms for _, ms in outcome.curve) * 1.08)
    places, price = svg.few_ticks(x, 4), (usd_per_hour or 0.0) / 3600
    priced = [svg.Tick(at, f"{at:g} s\n{at * price:.3g}") for at in places]
    plot = svg.Plot(
        (WIDTH_INCHES, 2.3),
        svg.Axis(x, priced, f"spent: time, and USD at {usd_per_hour:g} per hour", has_grid=True)
        if usd_per_hour
        else svg.Axis(x, svg.numbered_ticks(places), "seconds spent", has_grid=True),
        svg.Axis(y, svg.numbered_ticks(svg.few_ticks(y, 5)), "estimated ms", has_grid=True),
    )
    plot.steps(outcome.curve, svg.HEAD, 1.8)
    plot.dot((seconds, last_ms), svg.HEAD, 2.5)
    plot.text((seconds, last_ms), milliseconds(last_ms), anchor="end", shift=(0, 9))
    return plot.svg(f"Estimated latency from {milliseconds(first_ms)} to {milliseconds(last_ms)}")


def is_short_curve(outcome: TuningOutcome) -> bool:
    """Returns whether tuning tried something, but has too few points for a plot."""
    return _is_tried(outcome) and 1 < len(outcome.curve) < _FEWEST_POINTS


def _is_tried(outcome: TuningOutcome) -> bool:
    return any(task.trials for task in outcome.tasks)


# The distribution of all inferences' latencies: cumulative shares of base and head.

_SHOWN_SHARE = 0.995
_RATIO = 1.01
_WIDE, _FEW_DECADES = 6, 3


def distribution(launches: Sequence[Launch]) -> str:
    """Returns the plot, '' if no launch kept its times."""
    base = merged_histogram([launch.base_times for launch in launches])
    head = merged_histogram([launch.head_times for launch in launches])
    if not base.total or not head.total:
        return ""
    x = _latency_scale(base, head)
    inferences = f"{plural(head.total, 'inference')} of the head"
    shares = [svg.Tick(0, "0"), *(svg.Tick(at, f"{at}%") for at in (50, 90, 99))]
    places = _log_ticks(x.first, x.last) if x.is_logarithmic else svg.few_ticks(x, 5)
    plot = svg.Plot(
        (WIDTH_INCHES, 2.7),
        svg.Axis(
            x, svg.numbered_ticks(tuple(places)), f"{_AN_INFERENCE}; {inferences}", has_grid=True
        ),
        svg.Axis(svg.Scale(0, 103), shares, "share of inferences", has_grid=True),
        legend=(("base", svg.BASE), ("head", svg.HEAD)),
    )
    for times, colour in ((base, svg.BASE), (head, svg.HEAD)):
        plot.steps(list(_shares(times, x)), colour, 1.6)
    return plot.svg("Share of inferences by latency")


def _latency_scale(base: Histogram, head: Histogram) -> svg.Scale:
    """Returns a scale of all but the longest latencies. If these are many times the usual, it is
    logarithmic: otherwise base and head would be one line at its left end."""
    shortest = _RATIO ** (min(base.first, head.first) - 2)
    longest = max(base.quantile_ms(_SHOWN_SHARE), head.quantile_ms(_SHOWN_SHARE))
    usual = min(base.quantile_ms(0.5), head.quantile_ms(0.5))
    return svg.Scale(shortest, longest * 1.02, is_logarithmic=longest > _WIDE * usual)


def _log_ticks(shortest: float, longest: float) -> Iterator[float]:
    """Yields 1, 2 and 5 times each power of ten in the range; of a wide range only the powers."""
    first, last = math.floor(math.log10(shortest)), math.ceil(math.log10(longest))
    steps = (1, 2, 5) if last - first <= _FEW_DECADES else (1,)
    for power in range(first, last + 1):
        for step in steps:
            if shortest <= step * 10**power <= longest:
                yield step * 10**power


def _shares(histogram: Histogram, x: svg.Scale) -> Iterator[tuple[float, float]]:
    """Yields the percentage of faster inferences at each bin edge on the scale, the last at its
    end."""
    counts = itertools.accumulate(histogram.counts, initial=0)
    share_percent = 0.0
    for at, count in enumerate(counts):
        edge = _RATIO ** (histogram.first + at)
        if edge > x.last:
            break
        share_percent = 100 * count / histogram.total
        yield edge, share_percent
    yield x.last, share_percent


# Captions of plots, in a sentence or two.

_LAST = 0.99


def of_launches(comparison: Comparison, margin_percent: float) -> str:
    """Returns the position of the interval, which decides."""
    change = comparison.change_percent
    dots = "A dot is a launch: base and head in fresh processes. The diamond is all of them"
    if change is None:
        return f"{dots}."
    if change.low > margin_percent:
        meaning = "the interval lies wholly over the margin, so the head is slower"
    elif change.high < margin_percent:
        meaning = "the interval lies wholly under the margin, so the head passes"
    else:
        meaning = "the interval reaches over the margin, so more launches would have to decide"
    return f"{dots}: {meaning}."


def of_latencies(finding: Finding) -> str:
    """Returns the caption of the latencies: the meaning of each bar, and how it was measured."""
    caption = "Medians of one inference. Each dot is the median of one launch, a process of its own"
    if finding.reference_ms is None:
        return f"{caption}."
    return f"{caption}; ONNX Runtime was measured by itself, for comparison, and decides nothing."


def of_distribution(launches: Sequence[Launch]) -> str:
    """Returns the caption of the distribution: the slow end, which the median hides."""
    base = merged_histogram([launch.base_times for launch in launches])
    head = merged_histogram([launch.head_times for launch in launches])
    if not base.total or not head.total:
        return ""
    before, after = (milliseconds(each.quantile_ms(_LAST)) for each in (base, head))
    return (
        f"A curve further right is slower. {_LAST:.0%} of the inferences took at most {before} "
        f"with the base, and {after} with the head."
    )


def of_waterfall(finding: Finding) -> str:
    """Returns the layer that moved most, and what the bars leave out."""
    first, *_ = layers = parts(finding.differences)
    what = "what slower layers lost" if first.difference_ms > 0 else "what faster layers gained"
    return (
        f"{first.name} moved most: {difference_ms(first.difference_ms)}, {share(first.share)} "
        f"of {what}. Layers were timed {_how_timed(layers)}; what that does not explain is "
        "“everything else”."
    )


def of_layers(finding: Finding, measured: CellMeasurement | None, margin_percent: float) -> str:
    """Returns the caption of the layers: how they were timed, or why not; '' if a note says it, or
    none was to be timed."""
    layers, change = parts(finding.differences), finding.change_percent
    if layers:
        return f"Times are of all calls of one inference, {_how_timed(layers)}."
    if measured is None or change is None or measured.task_ms:
        return ""
    if abs(change.center) >= EXPLAINED * margin_percent:
        return ""
    return "Layers are timed where the latency moved by half the margin or more."


def _how_timed(layers: Sequence[Part]) -> str:
    if any(layer.is_alone for layer in layers):
        return "each alone, by tuning, and not inside the model"
    return "inside the model, by a profile of each build"


def of_candidates() -> str:
    """Returns the caption of the candidates: which corner is good."""
    return (
        "Lower left is better: fast and exact. The dashed line joins those that no other beats in "
        "both. Numbers are rows of the table of candidates."
    )


def of_tuning(outcome: TuningOutcome) -> str:
    """Returns the caption of tuning: its progress, and what it estimates."""
    (_, first), *_, (_, last) = outcome.curve
    return (
        f"From {milliseconds(first)} to {milliseconds(last)}: an estimate of the compiled model, "
        "the sum of its kernels timed alone. It is not the latency of base or head."
    )
