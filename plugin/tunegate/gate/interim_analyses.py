"""The times of the interim analyses: planned before measuring, so
that looking often costs no error."""

from __future__ import annotations

PLANNED = (4, 6, 9, 13, 19, 28, 41, 60)


def affordable_analyses(seconds: float, launch_seconds: float) -> tuple[int, ...]:
    """Returns the analyses whose launches fit the budget, the first one at least."""
    fitting = tuple(size for size in PLANNED if size * launch_seconds <= seconds)
    return fitting or PLANNED[:1]


def is_hopeless(projected: int | None, budget: int) -> bool:
    """More than four times the launches that can be paid for would be needed."""
    return projected is not None and projected > 4 * budget
