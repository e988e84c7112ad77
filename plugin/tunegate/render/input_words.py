"""The values of an input, in a few words."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby
from typing import assert_never

from tunegate.artifacts.input_rules import (
    DRAWN_LENGTH,
    Columns,
    Constant,
    Draw,
    DrawnInput,
    Files,
    Integers,
    Normal,
    OneOf,
    Uniform,
)

_SHOWN = 4
_MAX_TEXT = 30


def values_in_words(given: DrawnInput) -> str:
    """Returns the values of an input in words."""
    is_drawn = given.rule is None or not isinstance(given.rule.values, Files)
    if "sequence" in given.form and is_drawn:
        return f"{DRAWN_LENGTH} tensors, {_of_tensor(given)}"
    return _of_tensor(given)


def type_in_words(given: DrawnInput) -> str:
    """The shape and the type, which are those of each tensor of a sequence."""
    known = f"{list(given.shape)} {given.dtype}"
    is_open = not given.shape and given.form
    return f"{given.form} of {given.dtype if is_open else known}" if given.form else known


def _of_tensor(given: DrawnInput) -> str:
    if given.rule is None:
        return "true or false"
    values = given.rule.values
    match values:
        case Columns():
            return _columns(values)
        case Files():
            count = len(values.files)
            held = "value" if given.form else "array"
            return f"the {held} of a file" if count == 1 else f"{count} cases, one in each launch"
        case _:
            return _draw(values)


def _draw(values: Draw) -> str:
    match values:
        case Normal(mean=mean, deviation=deviation):
            is_standard = mean == 0 and deviation == 1
            return "standard normal" if is_standard else f"normal, {mean:.4g} ± {deviation:.4g}"
        case Uniform(low=low, high=high):
            return f"{low:.4g} to {high:.4g}"
        case Integers(low=low, high=high):
            return f"{low} to {high}"
        case OneOf():
            return f"{'words' if values.words > 1 else 'one'} of {_listed(values.values)}"
        case Constant(value=value):
            return f"always {str(value)[:_MAX_TEXT]}"
        case _:
            assert_never(values)


def _columns(values: Columns) -> str:
    """Returns the values of columns in words; neighbours with the same values are joined."""
    told = []
    for draw, same in groupby(enumerate(values.parts), key=lambda each: each[1]):
        places = [place for place, _ in same]
        where = str(places[0]) if len(places) == 1 else f"{places[0]} to {places[-1]}"
        told.append(f"column {where}: {_draw(draw)}")
    rest = len(told) - _SHOWN
    return "; ".join(told[:_SHOWN]) + (f"; and {rest} more" if rest > 0 else "")


def _listed(values: Sequence[object]) -> str:
    rest = len(values) - _SHOWN
    shown = ", ".join(str(value)[:_MAX_TEXT] for value in values[:_SHOWN])
    return shown + (f" and {rest} more" if rest > 0 else "")
