"""A pair of values: one for the base, one for the head of a launch."""

from __future__ import annotations

from collections.abc import Callable
from typing import Generic, NamedTuple, TypeVar

from tunegate.artifacts.changes import Side

_T = TypeVar("_T")
Made = TypeVar("Made")


class Sides(NamedTuple, Generic[_T]):
    base: _T
    head: _T

    def of(self, side: Side) -> _T:
        """Returns the value of this side."""
        return self.base if side == "base" else self.head

    def each(self, made: Callable[[_T], Made]) -> Sides[Made]:
        """Returns the pair of results of applying `made` to either side."""
        return Sides(made(self.base), made(self.head))


def other(side: Side) -> Side:
    """The side that a pair of blocks goes on with."""
    return "head" if side == "base" else "base"
