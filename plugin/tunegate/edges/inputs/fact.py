"""A fact about the values of an input, read from the graph."""

from __future__ import annotations

from typing import NamedTuple

from tunegate.artifacts.input_rules import Category
from tunegate.edges.inputs.trace import Selected

HIDES_NOTHING = "a mask that hides nothing"
"""The reason why an input is 1 everywhere."""


class Fact(NamedTuple):
    """Bounds of an input, or the values that it may have. It `is_must` where the model does not
    run on others. A fact is of all columns unless it says of which."""

    why: str
    low: float | None = None
    high: float | None = None
    values: tuple[Category, ...] = ()
    words: int = 1
    is_must: bool = False
    columns: Selected | None = None
