"""The plots of the HTML report, each as inline SVG no wider than a telephone."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from tunegate.artifacts.measurements import Comparison, Interval, Launch
from tunegate.artifacts.outcomes import TuningOutcome
from tunegate.artifacts.verdicts import Finding
from tunegate.report.escape import visible
from tunegate.report.operators import Part, parts
from tunegate.report.svg import (
    BASE,
    FASTER,
    GRID,
    HEAD,
    INK,
    MUTED,
    REFERENCE_COLOUR,
    SLOWER,
    SURFACE,
    few_ticks,
    styled_figure,
    svg,
)
from tunegate.report.units import difference_ms, percent
from tunegate.wording import milliseconds

if TYPE_CHECKING:
    from tunegate.report.svg import Axes, Figure
import itertools
import math
from collections.abc import Iterator
from typing import TYPE_CHECKING

from tunegate.artifacts.measurements import Histogram
from tunegate.decide.histogram import merged_histogram, quantile_ms, total
from tunegate.wording import plural

if TYPE_CHECKING:
    from tunegate.report.svg import Axes
from tunegate.artifacts.measurements import CellMeasurement
from tunegate.decide.decision import EXPLAINED
from tunegate.report.units import share

WIDTH_INCHES = 4.8
LABEL_SIZE = 10.5
MAX_ROWS = 20
"""Launches for which a plot grows; more of them move closer together."""
PLOTTED_OPERATORS = 7
NAME_CHARACTERS = 34
_FEWEST_POINTS = 3


def launches(comparison: Comparison, margin_percent: float, name: str) -> str:
    """Every launch's effect, and the interval that decides, against the margin."""
    effects = comparison.effects_percent
    interval = comparison.change_percent
    if not effects or interval is None:
        return ""
    figure, axes = _canvas(1.5 + 0.18 * min(len(effects), MAX_ROWS))
    rows = range(len(effects), 0, -1)
    axes.scatter(effects, rows, s=18, color=[_side(e, margin_percent) for e in effects], zorder=3)
    axes.axvline(0, color=MUTED, linewidth=0.8)
    axes.axvline(margin_percent, color=SLOWER, linewidth=1.0, linestyle=(0, (4, 2)))
    axes.set_ylim(-3.0, len(effects) + 1.6)
    _interval(axes, interval)
    axes.annotate(
        f"margin {margin_percent:g}%",
        (margin_percent, len(effects) + 0.9),
        xytext=(4, 0),
        textcoords="offset points",
        color=SLOWER,
        fontsize=LABEL_SIZE,
    )
    axes.set_yticks([len(effects), 1], labels=["launch 1", f"launch {len(effects)}"])
    axes.margins(x=0.12)
    axes.xaxis.set_major_locator(few_ticks(5))
    axes.xaxis.set_major_formatter(lambda value, _: percent(value).replace(".0%", "%"))
    axes.set_xlabel("change of latency, head against base", fontsize=LABEL_SIZE)
    description = f"Effect of each launch; together {percent(interval.center)}"
    return svg(figure, name=f"{name}-launches", description=description)


def latencies(finding: Finding, measured: Sequence[Launch], name: str) -> str:
    """Base, head and ONNX Runtime side by side, with a dot for every launch."""
    bars = [
        ("base", finding.base_ms, BASE, [launch.base_ms for launch in measured]),
        ("head", finding.head_ms, HEAD, [launch.head_ms for launch in measured]),
        ("ONNX Runtime", finding.reference_ms, REFERENCE_COLOUR, []),
    ]
    known = [(label, value, colour, dots) for label, value, colour, dots in bars if value]
    if not known:
        return ""
    figure, axes = _canvas(0.75 + 0.42 * len(known))
    longest = max(max((value, *dots)) for _, value, _, dots in known)
    for row, (_, value, colour, dots) in enumerate(known):
        axes.barh(row, value, height=0.62, color=colour, alpha=0.85)
        axes.scatter(dots, [row] * len(dots), s=7, color=INK, zorder=3, linewidths=0, alpha=0.7)
        axes.text(max((value, *dots)) + longest * 0.035, row, milliseconds(value), va="center")
    axes.set_yticks(range(len(known)), labels=[label for label, *_ in known])
    axes.set_xlim(0, longest * 1.24)
    axes.invert_yaxis()
    axes.xaxis.set_major_locator(few_ticks(5))
    axes.set_xlabel("ms per inference", fontsize=LABEL_SIZE)
    return svg(figure, name=f"{name}-latencies", description="Latency of base and head")


def waterfall(finding: Finding, name: str) -> str:
    """A waterfall from the base to the head, operator by operator, the largest difference
    first. What is left of the change are the others, and what the machine did between
    measuring the whole and its operators. Nothing where the latency did not move: its bars would
    be noise."""
    every = parts(finding.differences)
    change = finding.change_percent
    has_moved = change is None or change.excludes_zero
    if not every or finding.base_ms is None or finding.head_ms is None or not has_moved:
        return ""
    start, shown = finding.base_ms, every[:PLOTTED_OPERATORS]
    steps = [(visible(part.name, NAME_CHARACTERS), part.difference_ms) for part in shown]
    left = finding.head_ms - start - sum(part.difference_ms for part in shown)
    steps.append(("everything else", left))
    figure, axes = _canvas(0.62 + 0.42 * (len(steps) + 2))
    _draw_steps(axes, start, steps)
    axes.xaxis.set_major_locator(few_ticks(5))
    axes.set_xlabel("ms per inference", fontsize=LABEL_SIZE)
    return svg(figure, name=f"{name}-waterfall", description=_told(shown))


def tuning(outcome: TuningOutcome, usd_per_hour: float | None, name: str) -> str:
    """Estimated end-to-end latency against the seconds and the money spent on it; nothing where
    tuning tried nothing, or too little."""
    if len(outcome.curve) < _FEWEST_POINTS or not _is_tried(outcome):
        return ""
    seconds = [at for at, _ in outcome.curve]
    estimated_ms = [ms for _, ms in outcome.curve]
    figure, axes = _canvas(2.3)
    axes.grid(visible=True, axis="both")
    axes.step(seconds, estimated_ms, where="post", color=HEAD, linewidth=1.8)
    axes.plot(seconds[-1], estimated_ms[-1], "o", markersize=5, color=HEAD)
    axes.annotate(
        milliseconds(estimated_ms[-1]),
        (seconds[-1], estimated_ms[-1]),
        xytext=(0, 7),
        textcoords="offset points",
        ha="right",
    )
    axes.set_ylim(0, max(estimated_ms) * 1.08)
    axes.xaxis.set_major_locator(few_ticks(4))
    axes.set_ylabel("estimated ms", fontsize=LABEL_SIZE)
    axes.set_xlabel(_spending(usd_per_hour), fontsize=LABEL_SIZE)
    if usd_per_hour:
        price = usd_per_hour / 3600
        axes.xaxis.set_major_formatter(lambda at, _: f"{at:g} s\n{at * price:.3g}")
    description = f"Estimated latency from {milliseconds(estimated_ms[0])} "
    return svg(
        figure,
        name=f"{name}-curve",
        description=description + f"to {milliseconds(estimated_ms[-1])}",
    )


def is_short_curve(outcome: TuningOutcome) -> bool:
    """Returns whether tuning tried something, and came back with too few points for a plot."""
    return _is_tried(outcome) and 1 < len(outcome.curve) < _FEWEST_POINTS


def _is_tried(outcome: TuningOutcome) -> bool:
    return any(task.trials for task in outcome.tasks)


def _canvas(height_inches: float) -> tuple[Figure, Axes]:
    figure = styled_figure(WIDTH_INCHES, height_inches)
    return figure, figure.add_subplot()


def _interval(axes: Axes, interval: Interval) -> None:
    axes.plot([interval.low, interval.high], [-0.7, -0.7], color=INK, linewidth=2.4)
    axes.plot(interval.center, -0.7, "D", color=INK, markersize=5.5)
    text = f"{percent(interval.center)}  ({percent(interval.low)} to {percent(interval.high)})"
    behind = {"facecolor": SURFACE, "edgecolor": "none", "pad": 1.5}
    axes.text(interval.center, -2.1, text, ha="center", va="center", weight="bold", bbox=behind)


def _draw_steps(axes: Axes, start: float, steps: Sequence[tuple[str, float]]) -> None:
    """Two totals as dots and the differences as bars between them, each under its name."""
    at, edges = start, [start]
    _total(axes, 0, "base", start, BASE)
    for row, (label, difference) in enumerate(steps, start=1):
        colour = SLOWER if difference > 0 else FASTER
        axes.barh(row, difference, left=at, height=0.34, color=colour)
        axes.plot([at, at], [row - 1, row], color=GRID, linewidth=0.8, zorder=0)
        _labelled(axes, row, label, difference_ms(difference))
        at += difference
        edges.append(at)
    _total(axes, len(steps) + 1, "head", at, HEAD)
    room = (max(edges) - min(edges)) * 0.08 or abs(start) * 0.05 or 1.0
    axes.set_xlim(min(edges) - room, max(edges) + room)
    axes.set_ylim(len(steps) + 1.6, -0.9)
    axes.set_yticks([])


def _total(axes: Axes, row: int, label: str, value: float, colour: str) -> None:
    axes.plot(value, row, "o", color=colour, markersize=8, markeredgecolor=SURFACE)
    _labelled(axes, row, label, milliseconds(value))


def _labelled(axes: Axes, row: int, label: str, value: str) -> None:
    """A name above its bar at the left, the figure at the right."""
    across = axes.get_yaxis_transform()
    axes.text(0, row - 0.3, label, transform=across, va="bottom", fontsize=LABEL_SIZE)
    axes.text(1, row - 0.3, value, transform=across, va="bottom", ha="right", fontsize=LABEL_SIZE)


def _side(effect: float, margin_percent: float) -> str:
    return SLOWER if effect > margin_percent else BASE


def _told(shown: Sequence[Part]) -> str:
    told = ", ".join(f"{visible(p.name)} {difference_ms(p.difference_ms)}" for p in shown[:3])
    return f"Difference by operator: {told}"


def _spending(usd_per_hour: float | None) -> str:
    return f"spent: time, and USD at {usd_per_hour:g} per hour" if usd_per_hour else "seconds spent"


# The distribution of all inferences' latencies: base and head as cumulative shares.

_WIDTH_INCHES, _HEIGHT_INCHES = 4.8, 2.7
_SHOWN_SHARE = 0.995
_RATIO = 1.01
_WIDE, _FEW_DECADES = 6, 3


def distribution(launches: Sequence[Launch], name: str) -> str:
    """Returns the plot, '' where no launch kept its times."""
    base = merged_histogram(
        [launch.base_times for launch in launches if launch.base_times is not None]
    )
    head = merged_histogram(
        [launch.head_times for launch in launches if launch.head_times is not None]
    )
    if not total(base) or not total(head):
        return ""
    figure = styled_figure(_WIDTH_INCHES, _HEIGHT_INCHES)
    axes = figure.add_subplot()
    axes.grid(visible=True, axis="both")
    _draw(axes, base, BASE, "base")
    _draw(axes, head, HEAD, "head")
    _show_most(axes, base, head)
    axes.set_ylim(0, 103)
    for percentile in (50, 90, 99):
        axes.axhline(percentile, color=MUTED, linewidth=0.5, linestyle=(0, (2, 3)))
    axes.set_yticks([0, 50, 90, 99], labels=["0", "50%", "90%", "99%"])
    axes.set_xlabel(f"ms per inference; {plural(total(head), 'inference')} of the head")
    axes.set_ylabel("share of inferences")
    axes.legend(frameon=False, loc="lower right")
    return svg(figure, name=f"{name}-distribution", description="Share of inferences by latency")


def _show_most(axes: Axes, base: Histogram, head: Histogram) -> None:
    """Shows all but the longest. Where these are many times the usual, the axis is logarithmic:
    base and head would be one line at its left end."""
    shortest = _RATIO ** (min(base.first, head.first) - 2)
    longest = max(quantile_ms(base, _SHOWN_SHARE), quantile_ms(head, _SHOWN_SHARE))
    axes.set_xlim(shortest, longest * 1.02)
    if longest > _WIDE * min(quantile_ms(base, 0.5), quantile_ms(head, 0.5)):
        axes.set_xscale("log")
        ticks = list(_log_ticks(shortest, longest))
        axes.set_xticks(ticks, labels=[f"{at:g}" for at in ticks], minor=False)
        axes.set_xticks([], minor=True)
    else:
        axes.xaxis.set_major_locator(few_ticks(5))


def _log_ticks(shortest: float, longest: float) -> Iterator[float]:
    """1, 2 and 5 of each power of ten between the two; of a wide range the powers alone."""
    first, last = math.floor(math.log10(shortest)), math.ceil(math.log10(longest))
    steps = (1, 2, 5) if last - first <= _FEW_DECADES else (1,)
    for power in range(first, last + 1):
        for step in steps:
            if shortest <= step * 10**power <= longest:
                yield step * 10**power


def _draw(axes: Axes, found: Histogram, colour: str, label: str) -> None:
    edges = [_RATIO ** (found.first + at) for at in range(len(found.counts) + 1)]
    shares = [100 * each / total(found) for each in itertools.accumulate(found.counts)]
    axes.step(edges, [0.0, *shares], where="post", color=colour, linewidth=1.6, label=label)


# Captions of plots, in a sentence or two.

_LAST = 0.99


def of_launches(comparison: Comparison, margin_percent: float) -> str:
    """The place of the interval, which is what decides."""
    change = comparison.change_percent
    dots = "A dot is a launch: base and head in fresh processes. The diamond is all of them"
    if change is None:
        return f"{dots}."
    if change.low > margin_percent:
        said = "the interval lies wholly over the margin, so the head is slower"
    elif change.high < margin_percent:
        said = "the interval lies wholly under the margin, so the head passes"
    else:
        said = "the interval reaches over the margin, so more launches would have to decide"
    return f"{dots}: {said}."


def of_latencies(finding: Finding) -> str:
    """Returns the caption of the latencies: the meaning of each bar, and how it was measured."""
    told = "Medians of one inference. Each dot is the median of one launch, a process of its own"
    if finding.reference_ms is None:
        return f"{told}."
    return f"{told}; ONNX Runtime was measured by itself, for comparison, and decides nothing."


def of_distribution(launches: Sequence[Launch]) -> str:
    """The slow end, which the median hides."""
    base = merged_histogram([each.base_times for each in launches if each.base_times is not None])
    head = merged_histogram([each.head_times for each in launches if each.head_times is not None])
    if not total(base) or not total(head):
        return ""
    before, after = (milliseconds(quantile_ms(each, _LAST)) for each in (base, head))
    return (
        f"A curve further right is slower. {_LAST:.0%} of the inferences took at most {before} "
        f"with the base, and {after} with the head."
    )


def of_waterfall(finding: Finding) -> str:
    """The layer that moved most, and what the bars leave out."""
    first, *_ = found = parts(finding.differences)
    what = "what slower layers lost" if first.difference_ms > 0 else "what faster layers gained"
    return (
        f"{first.name} moved most: {difference_ms(first.difference_ms)}, {share(first.share)} "
        f"of {what}. Layers were timed {_how_timed(found)}; what that does not explain is "
        "“everything else”."
    )


def of_layers(finding: Finding, measured: CellMeasurement | None, margin_percent: float) -> str:
    """Returns the caption of the layers: how they were timed, or why they were not; nothing where a
    note says it, or none was to be timed."""
    found, change = parts(finding.differences), finding.change_percent
    if found:
        return f"Times are of all calls of one inference, {_how_timed(found)}."
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
    """Returns the caption of the candidates: the good corner."""
    return (
        "Lower left is better: fast and exact. The dashed line joins those that no other beats in "
        "both. Numbers are rows of the table of candidates."
    )


def of_tuning(outcome: TuningOutcome) -> str:
    """Returns the caption of tuning: its progress, and what it estimates."""
    (_, first), *_, (_, last) = outcome.curve
    return (
        f"From {milliseconds(first)} to {milliseconds(last)}: an estimate of the compiled model, "
        "the sum of its kernels timed alone. It is no latency of base or head."
    )
