"""Latency by error: each candidate that was measured, the Pareto front, and what ships."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from tunegate.artifacts.verdicts import CandidateOutcome
from tunegate.render.candidates.pareto_front import error_percent, pareto_front
from tunegate.render.drawing import few_ticks
from tunegate.render.escape import visible
from tunegate.render.svg import FASTER, HEAD, INK, MUTED, styled_figure, svg

if TYPE_CHECKING:
    from tunegate.render.drawing import Axes

_INCHES = (4.8, 3.0)


def latency_by_error(outcomes: Sequence[CandidateOutcome], name: str) -> str:
    """Returns the plot, '' where all compute the same numbers: then the times are enough. A number
    names the row of the table. One whose error nothing tells has no place in it."""
    measured = [
        (row, each)
        for row, each in enumerate(outcomes, start=1)
        if each.ms is not None and not each.has_unknown_error
    ]
    if not any(error_percent(each.error).center for _, each in measured):
        return ""
    figure = styled_figure(*_INCHES)
    axes = figure.add_subplot()
    axes.grid(visible=True, axis="both")
    _front(axes, outcomes)
    for row, each in measured:
        _candidate(axes, row, each)
    axes.margins(x=0.15, y=0.2)
    axes.set_xlim(left=0)
    axes.xaxis.set_major_locator(few_ticks(5))
    axes.yaxis.set_major_locator(few_ticks(4))
    axes.set_xlabel("ms per inference")
    axes.set_ylabel("error, %")
    return svg(figure, name=f"{name}-candidates", description=_told(outcomes))


def _candidate(axes: Axes, row: int, outcome: CandidateOutcome) -> None:
    ms, off = outcome.ms or 0.0, error_percent(outcome.error)
    error = off.center
    colour = HEAD if outcome.ships else MUTED
    if outcome.low_ms is not None and outcome.high_ms is not None:
        axes.plot([outcome.low_ms, outcome.high_ms], [error, error], color=colour, linewidth=1.2)
    if off.high is not None:
        axes.plot([ms, ms], [off.low, off.high], color=colour, linewidth=1.2)
    axes.plot(ms, error, "o", color=colour, markersize=9 if outcome.ships else 6, zorder=3)
    label = f"{row}: ships" if outcome.ships else str(row)
    weight = "bold" if outcome.ships else "normal"
    axes.annotate(
        label,
        (ms, error),
        xytext=(6, 4),
        textcoords="offset points",
        ha="left",
        color=INK,
        weight=weight,
    )


def _front(axes: Axes, outcomes: Sequence[CandidateOutcome]) -> None:
    front = pareto_front(outcomes)
    times = [each.ms or 0.0 for each in front]
    errors = [error_percent(each.error).center for each in front]
    axes.step(times, errors, where="post", color=FASTER, linewidth=1.2, linestyle=(0, (4, 2)))


def _told(outcomes: Sequence[CandidateOutcome]) -> str:
    front = ", ".join(visible(each.title) for each in pareto_front(outcomes))
    return f"Latency by error; on the Pareto front: {front}"
