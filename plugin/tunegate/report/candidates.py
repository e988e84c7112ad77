"""The table of a model's candidates."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import msgspec

from tunegate.artifacts.builds import ErrorEstimate
from tunegate.artifacts.verdicts import CandidateOutcome
from tunegate.report.escape import visible
from tunegate.report.svg import FASTER, HEAD, INK, MUTED, few_ticks, styled_figure, svg
from tunegate.report.table import Column, ReportTable, number_column, text_column
from tunegate.report.units import NONE
from tunegate.wording import milliseconds

if TYPE_CHECKING:
    from tunegate.report.svg import Axes

_MOST_CHARACTERS = 300


def candidates_table(outcomes: Sequence[CandidateOutcome]) -> ReportTable:
    """Returns the table of candidates: the result of each, and its reason; empty for a single
    candidate."""
    front = pareto_front(outcomes)
    rows = list(enumerate(outcomes, start=1)) if len(outcomes) > 1 else []
    columns: tuple[Column[tuple[int, CandidateOutcome]], ...] = (
        text_column("No.", lambda row: str(row[0])),
        text_column("Candidate", lambda row: row[1].title),
        number_column("Time", lambda row: milliseconds(row[1].ms)),
        number_column("From", lambda row: milliseconds(row[1].low_ms)),
        number_column("To", lambda row: milliseconds(row[1].high_ms)),
        number_column("Error", lambda row: _error(row[1])),
        text_column("Why", lambda row: _why(row[1], front)),
    )
    return ReportTable(columns, rows)


def _error(outcome: CandidateOutcome) -> str:
    if outcome.error is None:
        return "not in this run" if outcome.has_unknown_error else NONE
    if not outcome.error.samples:
        return NONE
    off = error_percent(outcome.error)
    high = "?" if off.high is None else f"{off.high:.3g}"
    return f"{off.center:.3g}% ({off.low:.3g} to {high})"


def _why(outcome: CandidateOutcome, front: Sequence[CandidateOutcome]) -> str:
    told = ["ships"] if outcome.ships else []
    if outcome.reason:
        told.append(outcome.reason[:_MOST_CHARACTERS])
    elif not outcome.ships:
        told.append("slower" if outcome not in front else "slower, and more exact")
    return ", ".join(told)


# The candidates that no other beats in both time and error. Pure.


class ErrorPercent(msgspec.Struct, frozen=True):
    """The error of the sample, with its bounds; `high` is None where there is none. 0 for
    float32."""

    center: float = 0.0
    low: float = 0.0
    high: float | None = 0.0


def error_percent(estimate: ErrorEstimate | None) -> ErrorPercent:
    """The share of the largest output, or of the samples whose largest output is another one."""
    if estimate is None:
        return ErrorPercent()
    if estimate.what == "max-error":
        return ErrorPercent(estimate.center, estimate.low, estimate.high)
    low = None if estimate.high is None else 100 - estimate.high
    return ErrorPercent(100 - estimate.center, low or 0.0, 100 - estimate.low)


def pareto_front(outcomes: Sequence[CandidateOutcome]) -> tuple[CandidateOutcome, ...]:
    """Returns the measured candidates that are faster than all that are as exact, the fastest
    first. One whose error nothing tells is not among them."""
    measured = [
        (each.ms, error_percent(each.error).center, each)
        for each in outcomes
        if each.ms is not None and not each.has_unknown_error
    ]
    ranked = sorted(measured, key=lambda each: each[:2])
    front: list[CandidateOutcome] = []
    best = float("inf")
    for _, error, outcome in ranked:
        if error < best:
            front.append(outcome)
            best = error
    return tuple(front)


# Latency by error: each candidate that was measured, the Pareto front, and what ships.

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
    return svg(figure, name=f"{name}-candidates", description=_describe_plot(outcomes))


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


def _describe_plot(outcomes: Sequence[CandidateOutcome]) -> str:
    front = ", ".join(visible(each.title) for each in pareto_front(outcomes))
    return f"Latency by error; on the Pareto front: {front}"
