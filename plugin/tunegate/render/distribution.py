"""How long inferences took, all of them: base and head as cumulative shares."""

from __future__ import annotations

import itertools
from collections.abc import Sequence

from tunegate.artifacts.measurements import Histogram, Launch
from tunegate.gate.histogram import merged_histogram, quantile_ms, total
from tunegate.plurals import plural
from tunegate.render.drawing import Axes, Figure, MaxNLocator
from tunegate.render.svg import BASE, HEAD, MUTED, styled, svg

_WIDTH_INCHES, _HEIGHT_INCHES = 4.8, 2.7
_SHOWN_SHARE = 0.995
_RATIO = 1.01


@styled()
def distribution(launches: Sequence[Launch], name: str) -> str:
    """Nothing where no launch kept its times."""
    base = merged_histogram(
        [launch.base_times for launch in launches if launch.base_times is not None]
    )
    head = merged_histogram(
        [launch.head_times for launch in launches if launch.head_times is not None]
    )
    if not total(base) or not total(head):
        return ""
    figure = Figure(figsize=(_WIDTH_INCHES, _HEIGHT_INCHES), layout="constrained")
    axes = figure.add_subplot()
    axes.grid(visible=True, axis="both")
    _draw(axes, base, BASE, "base")
    _draw(axes, head, HEAD, "head")
    longest = max(quantile_ms(base, _SHOWN_SHARE), quantile_ms(head, _SHOWN_SHARE))
    axes.set_xlim(_RATIO ** (min(base.first, head.first) - 2), longest * 1.02)
    axes.set_ylim(0, 103)
    for percentile in (50, 90, 99):
        axes.axhline(percentile, color=MUTED, linewidth=0.5, linestyle=(0, (2, 3)))
    axes.set_yticks([0, 50, 90, 99], labels=["0", "50%", "90%", "99%"])
    axes.xaxis.set_major_locator(MaxNLocator(5))
    axes.set_xlabel(f"ms per inference; {plural(total(head), 'inference')} of the head")
    axes.set_ylabel("share of inferences")
    axes.legend(frameon=False, loc="lower right")
    return svg(figure, name=f"{name}-distribution", description="Share of inferences by latency")


def _draw(axes: Axes, found: Histogram, colour: str, label: str) -> None:
    edges = [_RATIO ** (found.first + at) for at in range(len(found.counts) + 1)]
    shares = [100 * each / total(found) for each in itertools.accumulate(found.counts)]
    axes.step(edges, [0.0, *shares], where="post", color=colour, linewidth=1.6, label=label)
