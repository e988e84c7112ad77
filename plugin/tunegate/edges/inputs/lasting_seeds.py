"""Seeds of the inputs that decide whether a build in other numbers ships.

They are the same in each run, so that a candidate near its budget does not pass in one and fail in
the next. What is drawn from them follows from the model's inputs and their rules alone.
"""

from __future__ import annotations

from tunegate.edges.run_seed import derived

_ROOT = 1


def error_seeds(count: int) -> tuple[int, ...]:
    """The seeds of so many inputs that tell an error. More begin with those of fewer."""
    return tuple(derived(_ROOT, "accuracy", n) for n in range(count))


def lasting_order(cases: int) -> tuple[int, ...]:
    """The numbers of so many cases as if they were shuffled: lists are often sorted by class, and
    their first cases are of one class alone."""
    return tuple(sorted(range(cases), key=lambda case: derived(_ROOT, "order", case)))


def calibration_seeds(count: int) -> tuple[int, ...]:
    """The seeds of so many inputs to learn ranges from: none of those that tell an error."""
    return tuple(derived(_ROOT, "calibration", n) for n in range(count))
