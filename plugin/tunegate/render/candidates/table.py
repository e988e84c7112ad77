"""The table of a model's candidates."""

from __future__ import annotations

from collections.abc import Sequence

from tunegate.artifacts.verdicts import CandidateOutcome
from tunegate.render.candidates.pareto_front import error_percent, pareto_front
from tunegate.render.tables.table import Column, ReportTable, number_column, text_column
from tunegate.render.units import NONE
from tunegate.wording.latency import milliseconds

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
