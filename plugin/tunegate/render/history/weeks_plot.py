"""Spent and saved, week by week, as inline SVG."""

from __future__ import annotations

from collections.abc import Sequence

from tunegate.artifacts.history import CostSum
from tunegate.render.drawing import few_ticks
from tunegate.render.svg import FASTER, SLOWER, styled_figure, svg

_WIDTH_INCHES, _HEIGHT_INCHES = 4.7, 2.2
_SHOWN_WEEKS = 52
_BAR = 0.4
_LABELS = 5


def weeks_plot(weeks: Sequence[CostSum]) -> str:
    """The last year; in dollars where they are known, else in minutes of tuning. '' without any."""
    shown = weeks[-_SHOWN_WEEKS:]
    if not shown:
        return ""
    is_priced = any(row.cost.usd is not None for row in shown)
    spent = [(row.cost.usd or 0.0) if is_priced else row.cost.seconds / 60 for row in shown]
    saved = [
        (row.cost.saved_usd or 0.0) if is_priced else row.cost.saved_seconds / 60 for row in shown
    ]
    figure = styled_figure(_WIDTH_INCHES, _HEIGHT_INCHES)
    axes = figure.add_subplot()
    axes.grid(visible=True, axis="y")
    axes.grid(visible=False, axis="x")
    places = range(len(shown))
    axes.bar([at - _BAR / 2 for at in places], spent, _BAR, color=SLOWER, label="spent on tuning")
    axes.bar([at + _BAR / 2 for at in places], saved, _BAR, color=FASTER, label="saved by hits")
    step = max(1, -(-len(shown) // _LABELS))
    axes.set_xticks(list(places)[::step], labels=[row.name for row in shown[::step]])
    axes.set_xlim(-0.6, max(len(shown) - 0.4, 3.6))
    axes.yaxis.set_major_locator(few_ticks(5))
    axes.set_ylabel("USD a week" if is_priced else "minutes a week")
    axes.legend(
        loc="lower left", bbox_to_anchor=(0, 1), frameon=False, fontsize=8.5, ncols=2, borderpad=0
    )
    told = f"Spent on tuning and saved by hits in {len(shown)} weeks"
    return svg(figure, name="weeks", description=told)
