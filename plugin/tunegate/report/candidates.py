"""The table of a model's candidates."""

from collections.abc import Sequence

import msgspec

from tunegate.artifacts.builds import ErrorEstimate
from tunegate.artifacts.verdicts import CandidateOutcome
from tunegate.report.escape import visible
from tunegate.report.svg import (
    FASTER,
    HEAD,
    MUTED,
    Axis,
    Plot,
    Scale,
    few_ticks,
    numbered_ticks,
    padded_scale,
)
from tunegate.report.table import Column, ReportTable, number_column, text_column
from tunegate.report.units import NONE
from tunegate.wording import milliseconds

_MOST_CHARACTERS = 300


def candidates_table(outcomes: Sequence[CandidateOutcome]) -> ReportTable:
    """Returns the table of candidates: the result and reason of each; empty for a single
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
    reasons = ["ships"] if outcome.ships else []
    if outcome.reason:
        reasons.append(outcome.reason[:_MOST_CHARACTERS])
    elif not outcome.ships:
        reasons.append("slower" if outcome not in front else "slower, and more exact")
    return ", ".join(reasons)


# The candidates that no other one beats in both time and error. Pure.


class ErrorPercent(msgspec.Struct, frozen=True):
    """The error of the sample, with its bounds; `high` is None without an upper bound. 0 for
    float32."""

    center: float = 0.0
    low: float = 0.0
    high: float | None = 0.0


def error_percent(estimate: ErrorEstimate | None) -> ErrorPercent:
    """Returns the error relative to the largest output, or the share of samples whose largest
    output moved."""
    if estimate is None:
        return ErrorPercent()
    if estimate.what == "max-error":
        return ErrorPercent(estimate.center, estimate.low, estimate.high)
    low = None if estimate.high is None else 100 - estimate.high
    return ErrorPercent(100 - estimate.center, low or 0.0, 100 - estimate.low)


def pareto_front(outcomes: Sequence[CandidateOutcome]) -> tuple[CandidateOutcome, ...]:
    """Returns the measured candidates that are faster than all that are as exact, the fastest
    first, without candidates of unknown error."""
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


# Latency by error: each measured candidate, the Pareto front, and what ships.

_INCHES = (4.8, 3.0)


def latency_by_error(outcomes: Sequence[CandidateOutcome]) -> str:
    """Returns the plot, '' if all compute the same numbers: then the times are enough. Numbers
    refer to rows of the table. Candidates of unknown error are left out."""
    measured = [
        (row, each)
        for row, each in enumerate(outcomes, start=1)
        if each.ms is not None and not each.has_unknown_error
    ]
    if not any(error_percent(each.error).center for _, each in measured):
        return ""
    errors = [error_percent(each.error) for _, each in measured]
    x = Scale(0, padded_scale([each.high_ms or each.ms or 0.0 for _, each in measured], 0.15).last)
    highest = [e.center if e.high is None else e.high for e in errors]
    y = padded_scale([*(e.low for e in errors), *highest], 0.2)
    plot = Plot(
        _INCHES,
        Axis(x, numbered_ticks(few_ticks(x, 5)), "ms per inference", has_grid=True),
        Axis(y, numbered_ticks(few_ticks(y, 4)), "error, %", has_grid=True),
    )
    front = pareto_front(outcomes)
    ranks = [(each.ms or 0.0, error_percent(each.error).center) for each in front]
    plot.steps(ranks, FASTER, 1.2, "4 2")
    for row, each in measured:
        _draw_candidate(plot, row, each)
    titles = ", ".join(visible(each.title) for each in front)
    return plot.svg(f"Latency by error; on the Pareto front: {titles}")


def _draw_candidate(plot: Plot, row: int, outcome: CandidateOutcome) -> None:
    ms, off = outcome.ms or 0.0, error_percent(outcome.error)
    colour = HEAD if outcome.ships else MUTED
    if outcome.low_ms is not None and outcome.high_ms is not None:
        plot.line([(outcome.low_ms, off.center), (outcome.high_ms, off.center)], colour)
    if off.high is not None:
        plot.line([(ms, off.low), (ms, off.high)], colour)
    plot.dot((ms, off.center), colour, 4.5 if outcome.ships else 3)
    label = f"{row}: ships" if outcome.ships else str(row)
    place = (ms, off.center)
    plot.text(place, label, anchor="start", shift=(6, 7), is_bold=outcome.ships)
