"""The main effects of a study with their intervals."""

from __future__ import annotations

from markupsafe import Markup

from tunegate.report.escape import visible
from tunegate.report.svg import FASTER, INK, MUTED, SLOWER, styled_figure, svg
from tunegate_study.studies import Study

_WIDTH_INCHES, _ROW_INCHES, _EDGE_INCHES = 5.2, 0.26, 0.6
_LONGEST = 40


def effects_plot(study: Study) -> Markup:
    """Nothing where there is no effect. Each is on a line of its own, in the order of the table."""
    effects = study.main_effects
    if not effects:
        return Markup()
    height = _EDGE_INCHES + _ROW_INCHES * len(effects)
    figure = styled_figure(_WIDTH_INCHES, height)
    axes = figure.add_subplot()
    axes.axvline(0.0, color=INK, linewidth=0.8)
    for place, effect in enumerate(effects):
        found = effect.percent
        colour = SLOWER if found.center > 0 else FASTER
        colour = colour if effect.is_clear else MUTED
        axes.plot([found.low, found.high], [place, place], color=colour, linewidth=1.6)
        axes.plot([found.center], [place], "o", color=colour, markersize=5)
    axes.set_yticks(range(len(effects)))
    axes.set_yticklabels([visible(f"{e.axis} {e.level}", _LONGEST) for e in effects])
    axes.set_ylim(len(effects) - 0.5, -0.5)
    axes.set_xlabel("time against the first level, %")
    told = f"Main effects of {len(effects)} levels with their intervals"
    # The drawing is our own, its texts are escaped by matplotlib.
    return Markup(svg(figure, name="effects", description=told))  # noqa: S704
