"""Results of revalidated records, as a table for people."""

from __future__ import annotations

from collections.abc import Sequence

from tunegate.commands.table import show_lines, show_table
from tunegate.plurals import plural
from tunegate.revalidation.challenges import Revalidated


def show_revalidation(title: str, results: Sequence[Revalidated]) -> None:
    show_table(
        title,
        ("task", "", "claimed ms", "measured ms", "beside it ms", ""),
        (
            (
                result.name,
                result.status,
                f"{result.claimed_ms:.4g}",
                _milliseconds(result.measured_ms),
                _milliseconds(result.incumbent_ms),
                "not what was claimed" if result.is_implausible else "",
            )
            for result in results
        ),
    )
    taken = sum(result.status == "taken" for result in results)
    show_lines([f"better records now: {taken} of {plural(len(results), 'task')}"])


def _milliseconds(value: float | None) -> str:
    return "" if value is None else f"{value:.4g}"
