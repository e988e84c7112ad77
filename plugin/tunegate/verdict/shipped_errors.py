"""The errors of what ships of a cell, under its budget of accuracy."""

from __future__ import annotations

from typing import TypeGuard

from tunegate.artifacts.builds import Build, CellBuilds
from tunegate.artifacts.error_estimates import ShippedErrors, SideError
from tunegate.artifacts.measurements import Comparison
from tunegate.gate.error_moves import moved_errors


def shipped_errors(
    built: CellBuilds | None, comparison: Comparison | None = None
) -> ShippedErrors | None:
    """The errors of both sides; None for a model that must compute the same as float32, or of which
    nothing ships."""
    sides = (built.base, built.head) if built is not None else ()
    limits = next((side.limits for side in sides[::-1] if _ships_under_budget(side)), ())
    if not limits:
        return None
    base, head = map(_side_error, sides)
    change = comparison.change_percent if comparison is not None else None
    return ShippedErrors(
        base=base, head=head, moved=moved_errors(base, head, change), limits=limits
    )


def _ships_under_budget(side: Build | None) -> TypeGuard[Build]:
    return side is not None and bool(side.limits) and side.error is None


def _side_error(build: Build | None) -> SideError | None:
    if build is None or build.error is not None:
        return None
    return SideError(title=build.title, estimates=build.error_estimate)
