"""The packing of constants, done by numpy: what the compiler makes of a
layout is splits and transpositions.

A kernel that is compiled to do it is a third of what compiling a candidate takes, and it runs once.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np
from tvm.ir import TensorLoad
from tvm.s_tir import SBlockRealize
from tvm.tirx import BufferStore, FloorDiv, FloorMod, For, IntImm, Var


class Digit(NamedTuple):
    """A digit of the index along an axis: (index // stride) % extent."""

    axis: int
    stride: int
    extent: int


class Move(NamedTuple):
    """One argument laid out anew. `read` and `written` say of which digits of the loops its
    dimensions are, before and after; None is a dimension of one."""

    argument: int
    read: tuple[Digit | None, ...]
    written: tuple[Digit | None, ...]

    def of(self, value: np.ndarray) -> np.ndarray:
        read, written = ([d for d in digits if d] for digits in (self.read, self.written))
        value = value.reshape([digit.extent for digit in read])
        value = value.transpose([read.index(digit) for digit in _by_axis(read)])
        parts = _by_axis(written)
        value = value.reshape([digit.extent for digit in parts])
        value = value.transpose([parts.index(digit) for digit in written])
        shape = [digit.extent if digit else 1 for digit in self.written]
        return np.ascontiguousarray(value.reshape(shape))


def moves_of(prepack: Any) -> tuple[Move, ...] | None:
    """Returns one move for each output of a function that lays arguments out anew, in their order,
    or None where the function does anything else."""
    if not isinstance(prepack.body, SBlockRealize):
        return None
    buffers, body = list(prepack.params), prepack.body.block.body
    found: dict[int, Move] = {}
    for nest in getattr(body, "seq", [body]):
        placed = _placed(nest, buffers)
        if placed is None:
            return None
        output, move = placed
        found[output] = move
    outputs = range(len(buffers) - len(found), len(buffers))
    return tuple(found[output] for output in outputs) if set(found) == set(outputs) else None


def _placed(nest: Any, buffers: Sequence[Any]) -> tuple[int, Move] | None:
    """The number of the buffer that a loop nest writes, and what it does."""
    while isinstance(nest, For):
        nest = nest.body
    if not isinstance(nest, SBlockRealize):
        return None
    block, store = nest.block, nest.block.body
    if not isinstance(store, BufferStore) or not isinstance(store.value, TensorLoad):
        return None
    axes = [each.var for each in block.iter_vars]
    loops = tuple(int(each.dom.extent) for each in block.iter_vars)
    output, argument = _number(buffers, store.buffer), _number(buffers, store.value.source)
    read, written = (_digits(i, axes, loops) for i in (store.value.indices, store.indices))
    if output is None or argument is None or read is None or written is None:
        return None
    is_all = all(_size(buffers[n]) == math.prod(loops) for n in (output, argument))
    return (output, Move(argument, read, written)) if is_all else None


def _size(buffer: Any) -> int:
    return math.prod(int(extent) for extent in buffer.shape)


def _number(buffers: Sequence[Any], wanted: Any) -> int | None:
    return next((n for n, buffer in enumerate(buffers) if buffer.same_as(wanted)), None)


def _digits(
    indices: Iterable[Any], axes: Sequence[Any], loops: Sequence[int]
) -> tuple[Digit | None, ...] | None:
    """The digits of the indices, or None where they do not say every loop exactly once."""
    found: list[Digit | None] = []
    for index in indices:
        if isinstance(index, IntImm) and int(index) == 0:
            found.append(None)
            continue
        digit = _digit(index, axes, loops)
        if digit is None:
            return None
        found.append(digit if digit.extent > 1 else None)
    return tuple(found) if _covers([digit for digit in found if digit], loops) else None


def _digit(index: Any, axes: Sequence[Any], loops: Sequence[int]) -> Digit | None:
    if isinstance(index, Var):
        axis = next((n for n, variable in enumerate(axes) if variable.same_as(index)), None)
        return None if axis is None else Digit(axis, 1, loops[axis])
    if not isinstance(index, (FloorDiv, FloorMod)) or not isinstance(index.b, IntImm):
        return None
    inner, number = _digit(index.a, axes, loops), int(index.b)
    if inner is None or inner.extent % number:
        return None
    if isinstance(index, FloorMod):
        return Digit(inner.axis, inner.stride, number)
    return Digit(inner.axis, inner.stride * number, inner.extent // number)


def _covers(digits: Sequence[Digit], loops: Sequence[int]) -> bool:
    strides = [1] * len(loops)
    for digit in reversed(_by_axis(digits)):
        if digit.stride != strides[digit.axis]:
            return False
        strides[digit.axis] *= digit.extent
    return strides == list(loops)


def _by_axis(digits: Iterable[Digit]) -> list[Digit]:
    """The digits by axis, in the order in which numbers are written: the
    digit that counts most comes first."""
    return sorted(digits, key=lambda digit: (digit.axis, -digit.stride))
