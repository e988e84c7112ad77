"""What lays a constant out anew is read as splits and transpositions, or left to the compiler."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from tvm import te
from tvm.driver import build
from tvm.runtime import tensor
from tvm.s_tir import Schedule
from tvm.tirx import IndexMap

from tunegate.compiler.layouts.packing import moves_of

Split = tuple[int, int, int]
"""A dimension of the result: (axis, stride, extent)."""


def copied(extents: tuple[int, ...], value: Callable[[Any], Any] = lambda x: x) -> Any:
    a = te.placeholder(extents, name="a")
    b = te.compute(extents, lambda *axes: value(a(*axes)), name="b")
    return Schedule(te.create_prim_func([a, b]))


def part(axis: Any, whole: int, stride: int, extent: int) -> Any:
    """A part of an index as the compiler writes it."""
    inner = axis if stride * extent == whole else axis % (stride * extent)
    return inner if stride == 1 else inner // stride


def laid_out(extents: tuple[int, ...], splits: list[Split]) -> Any:
    schedule = copied(extents)

    def index(*axes: Any) -> list[Any]:
        return [part(axes[axis], extents[axis], *split) for axis, *split in splits]

    layout = IndexMap.from_func(index, ndim=len(extents), index_dtype="int32")
    schedule.transform_layout("b", ("write", 0), layout)
    return schedule.mod["main"]


def expected(value: np.ndarray, splits: list[Split]) -> np.ndarray:
    """One number after the other."""
    result = np.empty([extent for _, _, extent in splits], value.dtype)
    for place in np.ndindex(value.shape):
        result[tuple(place[axis] // stride % extent for axis, stride, extent in splits)] = value[
            place
        ]
    return result


@st.composite
def layouts(draw: st.DrawFn) -> tuple[tuple[int, ...], list[Split]]:
    """Every axis in up to three parts, all parts in any order; an axis of one is one part."""
    extents, splits = [], []
    for axis in range(draw(st.integers(1, 3))):
        stride = 1
        for extent in draw(st.lists(st.integers(2, 5), max_size=3)) or [1]:
            splits.append((axis, stride, extent))
            stride *= extent
        extents.append(stride)
    return tuple(extents), draw(st.permutations(splits))


@given(layouts())
@settings(deadline=None)
def test_a_layout_is_what_its_indices_say(layout: tuple[tuple[int, ...], list[Split]]) -> None:
    extents, splits = layout
    moves = moves_of(laid_out(extents, splits))
    assert moves is not None
    (move,) = moves
    value = np.arange(math.prod(extents), dtype="int32").reshape(extents)
    assert move.argument == 0
    assert np.array_equal(move.of(value), expected(value, splits))


def test_it_is_what_the_compiler_makes_of_it() -> None:
    splits = [(1, 4, 8), (0, 1, 3), (1, 1, 2), (1, 2, 2)]
    function = laid_out((3, 32), splits)
    value = np.random.default_rng(1).uniform(size=(3, 32)).astype("float32")
    output = tensor(np.empty([extent for _, _, extent in splits], "float32"))
    build(function, target="llvm")(tensor(value), output)
    (move,) = moves_of(function) or ()
    assert np.array_equal(move.of(value), output.numpy())


def test_what_computes_is_no_packing() -> None:
    assert moves_of(copied((4, 3), lambda x: x + 1.0).mod["main"]) is None


def test_what_leaves_something_out_is_no_packing() -> None:
    a = te.placeholder((4, 8), name="a")
    first = te.create_prim_func([a, te.compute((4,), lambda i: a[i, 0], name="b")])
    twice = te.create_prim_func([a, te.compute((4, 8), lambda i, j: a[i, i], name="b")])
    padded = te.create_prim_func([a, te.compute((4, 4), lambda i, j: a[i, j * 2 % 8], name="b")])
    assert [moves_of(function) for function in (first, twice, padded)] == [None] * 3
