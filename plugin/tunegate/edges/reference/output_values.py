"""The arrays inside of an output: a tensor is one, and a sequence or a map has several."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np


class PlacedArray(NamedTuple):
    """An array, and where in its output it is: '' where it is the output. Equal places of two
    outputs mean equal structure."""

    place: str
    array: Any


def arrays_in(value: Any, place: str = "") -> Iterator[PlacedArray]:
    """Yields the arrays of a tensor, a sequence, a map, a sequence of maps, or an optional value
    that is absent."""
    if value is None:
        yield PlacedArray(f"{place} (absent)".lstrip(), np.empty(0))
    elif isinstance(value, Mapping):
        yield from _of_maps([value], place)
    elif not isinstance(value, list | tuple):
        yield PlacedArray(place, np.asarray(value))
    elif value and all(isinstance(each, Mapping) for each in value):
        yield from _of_maps(value, place)
    else:
        yield PlacedArray(f"{place} ({len(value)} long)".lstrip(), np.empty(0))
        for at, each in enumerate(value):
            yield from arrays_in(each, f"{place}[{at}]")


def kind(value: Any) -> tuple[tuple[int, ...], str]:
    """Returns the shape of an output and NumPy's name of its dtype; what is no tensor has no shape,
    and says what it is."""
    if value is None:
        return (), "optional"
    if isinstance(value, Mapping):
        return (), "map"
    if isinstance(value, list | tuple):
        kinds = {kind(each)[1] for each in value}
        return (), f"sequence({kinds.pop()})" if len(kinds) == 1 else "sequence"
    array = np.asarray(value)
    return tuple(array.shape), str(array.dtype)


def _of_maps(maps: Sequence[Mapping[Any, Any]], place: str) -> Iterator[PlacedArray]:
    """The keys of all of them, and the values: a classifier's hundred maps are a table. Their
    floats have lost their type: they are taken for the usual one."""
    where = f"{place} ({len(maps)} maps)".lstrip()
    keys = [(at, key) for at, each in enumerate(maps) for key in sorted(each)]
    yield PlacedArray(
        f"{where} keys", np.array([f"{at}: {key!r}" for at, key in keys], dtype=object)
    )
    values = np.asarray([maps[at][key] for at, key in keys])
    is_float = values.dtype.kind == "f"
    yield PlacedArray(f"{where} values", values.astype(np.float32) if is_float else values)
