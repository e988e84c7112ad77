"""The categories that encoders have in their attributes."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from tunegate.edges.inputs.constants import attributes_of
from tunegate.edges.inputs.dataflow import Dataflow
from tunegate.edges.inputs.fact import Fact
from tunegate.edges.inputs.trace import Meeting

_MAX_CATEGORIES = 1000
_WORDS = 8
"""The number of known words in a text that the model takes apart."""


def encoder_keys(*names: str) -> Callable[[Meeting, Dataflow], Fact | None]:
    """Categories that an encoder has in its attributes."""

    def told(meeting: Meeting, _: Dataflow) -> Fact | None:
        step, position = meeting.use
        attributes = attributes_of(step.node)
        known: list[Any] = next((attributes[name] for name in names if attributes.get(name)), [])
        what = step.op.rpartition(".")[2]
        if position != 0 or not len(known):
            return None
        words = _WORDS if meeting.trace.is_text else 1
        return categories(list(known), f"categories of {what}", words)

    return told


def categories(known: list[Any], why: str, words: int = 1) -> Fact | None:
    """Some of them, evenly spread where there are many."""
    every = [_text(value) if isinstance(value, bytes | str) else int(value) for value in known]
    values = list(dict.fromkeys(value for value in every if value is not None))
    stride = max(1, math.ceil(len(values) / _MAX_CATEGORIES))
    if not values:
        return None
    return Fact(why, values=tuple(values[::stride]), words=words, is_must=True)


def _text(value: bytes | str) -> str | None:
    try:
        return value.decode() if isinstance(value, bytes) else value
    except UnicodeDecodeError:
        return None
