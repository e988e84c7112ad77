"""Elements of an output that carry information about an error.

A clip, a sigmoid or a mask ends in values that an error before it does not move: elements that both
sides have at such a bound say nothing of how far the two are apart.
"""

from __future__ import annotations

from typing import Any

import numpy as np


class TellingElements:
    """One array of an output, over all inputs. Its bounds are 0, 1, and the least and the largest
    value of it where several inputs end in them."""

    def __init__(self) -> None:
        self._first: Any = None
        self._least: Any = None
        self._largest: Any = None
        self.varies = False
        self.elements = 0
        self.at_bounds = 0

    def tell(self, got: Any, reference: Any) -> bool:
        """Records an output, and returns whether at least one element carries information on this
        input."""
        self._compare(reference)
        if reference.dtype.kind != "f" or not reference.size or got.shape != reference.shape:
            return bool(reference.size)
        is_finite = np.isfinite(reference)
        at_bound = np.isin(reference, self._bounds(reference[is_finite]))
        self.elements += reference.size
        self.at_bounds += int(np.count_nonzero(at_bound))
        return bool(np.any(is_finite & ~(at_bound & (got == reference))))

    def _compare(self, reference: Any) -> None:
        if self._first is None:
            self._first = reference
        elif not self.varies:
            is_float = reference.dtype.kind == "f"
            self.varies = not np.array_equal(self._first, reference, equal_nan=is_float)

    def _bounds(self, finite: Any) -> list[Any]:
        found = [0.0, 1.0]
        if not finite.size:
            return found
        least, largest = finite.min(), finite.max()
        found += [least] if least == self._least else []
        found += [largest] if largest == self._largest else []
        self._least = least if self._least is None else min(least, self._least)
        self._largest = largest if self._largest is None else max(largest, self._largest)
        return found


def largest_places(reference: Any) -> Any | None:
    """The place of the largest value of each row along the last axis, -1 for rows that have it in
    several places, or are 0 and 1 alone. None where no row has a place."""
    if reference.dtype.kind != "f" or not reference.ndim or reference.shape[-1] < 2:  # noqa: PLR2004 -- one has no rival
        return None
    rows = reference.reshape(-1, reference.shape[-1])
    if not rows.size:
        return None
    largest = rows.max(-1, keepdims=True)
    is_alone = np.count_nonzero(rows == largest, axis=-1) == 1
    is_saturated = np.all((rows == 0) | (rows == 1), axis=-1)
    telling = is_alone & ~is_saturated & np.isfinite(largest[:, 0])
    return np.where(telling, np.argmax(rows, -1), -1) if np.any(telling) else None


def agreement(got: Any, reference: Any) -> bool | None:
    """Returns whether the largest value is in the same place in each row that has one; None where
    none has."""
    places = largest_places(reference)
    if places is None:
        return None
    if got.shape != reference.shape:
        return False
    ours = np.argmax(got.reshape(-1, got.shape[-1]), -1)
    return bool(np.all((ours == places) | (places < 0)))


class MovingPlaces:
    """The places of the largest values of one array of an output, over all inputs. A model that
    answers the same whatever it is asked agrees with anything that always answers so."""

    def __init__(self) -> None:
        self._first: Any = None
        self.moves = False

    def add(self, reference: Any) -> None:
        """Takes the array of one more input."""
        places = largest_places(reference)
        if places is None or self.moves:
            return
        if self._first is None or self._first.shape != places.shape:
            self.moves = self._first is not None
            self._first = places
            return
        both = (self._first >= 0) & (places >= 0)
        self.moves = bool(np.any(both & (self._first != places)))
        self._first = np.where(self._first >= 0, self._first, places)
