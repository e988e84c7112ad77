"""The history as CSV (RFC 4180), for a spreadsheet. No text in it is a formula there."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Sequence
from typing import Any

from tunegate.artifacts.history import HistoryEntry, ModelCost
from tunegate.report.escape import drawn_as_text

_FORMULA = frozenset("=+-@\t\r\n|%")
"""Characters that begin a formula of a spreadsheet. LibreOffice looks behind blanks, too."""
_DECIMALS = 6
"""A nanosecond of what is in milliseconds."""
_COLUMNS: tuple[tuple[str, Callable[[HistoryEntry], str | float | None]], ...] = (
    ("at_utc_seconds", lambda entry: entry.at),
    ("authored_utc_seconds", lambda entry: entry.authored),
    ("repository", lambda entry: entry.repository),
    ("change", lambda entry: entry.change),
    ("is_aside", lambda entry: str(entry.is_aside).lower()),
    ("commit", lambda entry: entry.commit),
    ("release", lambda entry: entry.release),
    ("run_url", lambda entry: entry.run_url),
    ("model", lambda entry: entry.model),
    ("target", lambda entry: entry.target),
    ("device", lambda entry: entry.device),
    ("runtime", lambda entry: entry.runtime),
    ("status", lambda entry: entry.status),
    ("reason", lambda entry: entry.reason),
    ("base_ms", lambda entry: entry.base_ms),
    ("head_ms", lambda entry: entry.head_ms),
    ("change_low_percent", lambda entry: _percents(entry)[0]),
    ("change_percent", lambda entry: _percents(entry)[1]),
    ("change_high_percent", lambda entry: _percents(entry)[2]),
    ("versions", lambda entry: ", ".join(f"{n} {v}" for n, v in sorted(entry.versions.items()))),
)


def csv_lines(entries: Sequence[HistoryEntry]) -> str:
    """A line of names, and one for each entry; what is unknown is empty."""
    out = io.StringIO()
    writer = csv.writer(out)
    costs = ModelCost.__struct_fields__
    writer.writerow([*(name for name, _ in _COLUMNS), *costs])
    for entry in entries:
        cost = [getattr(entry.cost, name) for name in costs] if entry.cost else [None] * len(costs)
        writer.writerow([_cell(value(entry)) for _, value in _COLUMNS] + [_cell(c) for c in cost])
    return out.getvalue()


def _percents(entry: HistoryEntry) -> tuple[float | None, float | None, float | None]:
    found = entry.change_percent
    return (None, None, None) if found is None else (found.low, found.center, found.high)


def _cell(value: Any) -> Any:  # noqa: ANN401  # what the csv module takes
    if value is None:
        return ""
    if isinstance(value, float):
        return int(value) if value.is_integer() else round(value, _DECIMALS)
    if not isinstance(value, str):
        return value
    shown = drawn_as_text(value)
    return f"'{shown}" if shown.lstrip()[:1] in _FORMULA else shown
