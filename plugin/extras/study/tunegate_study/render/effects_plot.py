"""The main effects of a study with their intervals."""

from __future__ import annotations

from markupsafe import Markup

from tunegate.report.escape import visible
from tunegate.report.svg import (
    FASTER,
    INK,
    MUTED,
    SLOWER,
    Axis,
    Plot,
    Scale,
    Tick,
    few_ticks,
    numbered_ticks,
    padded_scale,
)
from tunegate_study.studies import Study

_WIDTH_INCHES, _ROW_INCHES, _EDGE_INCHES = 5.2, 0.26, 0.6
_LONGEST = 40


def effects_plot(study: Study) -> Markup:
    """Returns the plot, '' without effects. Each has its own line, in table order."""
    effects = study.main_effects
    if not effects:
        return Markup()
    ends = [end for effect in effects for end in (effect.percent.low, effect.percent.high)]
    x = padded_scale([0.0, *ends], 0.05)
    names = [visible(f"{each.axis} {each.level}", _LONGEST) for each in effects]
    plot = Plot(
        (_WIDTH_INCHES, _EDGE_INCHES + _ROW_INCHES * len(effects)),
        Axis(x, numbered_ticks(few_ticks(x, 5)), "time against the first level, %", has_grid=True),
        Axis(Scale(len(effects) - 0.5, -0.5), [Tick(at, name) for at, name in enumerate(names)]),
    )
    plot.vertical(0.0, INK, 0.8)
    for place, effect in enumerate(effects):
        colour = SLOWER if effect.percent.center > 0 else FASTER
        colour = colour if effect.is_clear else MUTED
        plot.line([(effect.percent.low, place), (effect.percent.high, place)], colour, 1.6)
        plot.dot((effect.percent.center, place), colour, 2.5)
    told = f"Main effects of {len(effects)} levels with their intervals"
    # The drawing is our own, its texts are escaped by `Plot`.
    return Markup(plot.svg(told))  # noqa: S704
