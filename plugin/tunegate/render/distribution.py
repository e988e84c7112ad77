"""The distribution of all inferences' latencies: base and head as cumulative shares."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from tunegate.artifacts.measurements import Histogram, Launch
from tunegate.gate.histogram import merged_histogram, quantile_ms, total
from tunegate.plurals import plural
from tunegate.render.drawing import few_ticks
from tunegate.render.svg import BASE, HEAD, MUTED, styled_figure, svg

if TYPE_CHECKING:
    from tunegate.render.drawing import Axes

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
