from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tunegate.models.reference.comparison import arrays_in, kind

MAPS = [{"dog": 0.25, "cat": 0.75}, {"cat": 1.0}]


def seen(value: Any) -> dict[str, list[Any]]:
    return {part.place: part.array.tolist() for part in arrays_in(value)}


@pytest.mark.parametrize(
    ("value", "arrays"),
    [
        (np.array([1.0]), {"": [1.0]}),
        (np.zeros((0, 3)), {"": []}),
        (2.5, {"": 2.5}),
        (None, {"(absent)": []}),
        ([], {"(0 long)": []}),
        ([np.ones(1), None], {"(2 long)": [], "[0]": [1.0], "[1] (absent)": []}),
        ({2: 0.5, 1: 0.25}, {"(1 maps) keys": ["0: 1", "0: 2"], "(1 maps) values": [0.25, 0.5]}),
        (
            MAPS,
            {
                "(2 maps) keys": ["0: 'cat'", "0: 'dog'", "1: 'cat'"],
                "(2 maps) values": [0.75, 0.25, 1.0],
            },
        ),
    ],
)
def test_every_output_is_some_arrays(value: Any, arrays: dict[str, list[Any]]) -> None:
    assert seen(value) == arrays


def test_the_floats_of_maps_are_of_the_usual_type() -> None:
    assert [part.array.dtype.name for part in arrays_in(MAPS)] == ["object", "float32"]
    assert [part.array.dtype.name for part in arrays_in({"a": 1})] == ["object", "int64"]


@pytest.mark.parametrize(
    ("value", "named"),
    [
        (np.zeros((2, 3), "float32"), ((2, 3), "float32")),
        (np.array(["a"], dtype=object), ((1,), "object")),
        (MAPS, ((), "sequence(map)")),
        ([np.zeros(1, "int64")], ((), "sequence(int64)")),
        ([np.zeros(1, "int64"), None], ((), "sequence")),
        ([], ((), "sequence")),
        ({}, ((), "map")),
        (None, ((), "optional")),
    ],
)
def test_an_output_says_what_it_is(value: Any, named: tuple[tuple[int, ...], str]) -> None:
    assert kind(value) == named
