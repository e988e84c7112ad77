"""Latencies of a report that lie apart by another share than the change beside them, and why."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from tunegate.artifacts.measurements import Comparison

_TOLD_FROM = 1.0
"""The percentage points beyond the interval from which a reader would notice."""


def unlike_medians(comparisons: Sequence[Comparison]) -> Iterator[str]:
    """Yields a note for each model whose medians of all inferences lie apart by another share than
    its change, which is of inferences in turn: a machine that is slow for a while moves the medians
    of the side that had more of it."""
    for each in comparisons:
        change = each.change_percent
        if change is None or not each.base_ms or each.head_ms is None:
            continue
        apart = 100 * (each.head_ms / each.base_ms - 1)
        if not change.low - _TOLD_FROM <= apart <= change.high + _TOLD_FROM:
            yield (
                f"{each.cell.model} on {each.cell.target}: base and head are medians of all "
                f"inferences and lie {apart:+.1f}% apart. The change of {change.center:+.1f}% "
                "compares inferences in turn, so it has no part of what slowed the machine "
                "for a while"
            )
