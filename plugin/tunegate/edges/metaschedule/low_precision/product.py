"""A fused kernel that is a product, with constant weights or of two activations: what it
multiplies, and what becomes of the sums."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

from tvm import sym
from tvm.ir import TensorLoad
from tvm.s_tir.stmt import SBlockRealize
from tvm.tirx import Add, BufferStore, For, IntImm, IterVar, Mul

from tunegate.edges.metaschedule.low_precision.padding import padding_of
from tunegate.edges.metaschedule.low_precision.product_shape import Extents, ProductShape
from tunegate.edges.metaschedule.passes.prepacking import ATTRIBUTE

_CONVOLUTION_LOOPS = (4, 3)
"""The loops over the result of a convolution, and over what it sums up."""
_IMAGE = 3
"""The dimensions of a convolution's result before its columns."""
_FLOAT = "float32"


class Stage(NamedTuple):
    """A step from the sums to the result, number by number: `value` over `variables`, one for each
    dimension of the result, into `buffer`."""

    buffer: Any
    variables: tuple[Any, ...]
    value: Any


class Product(NamedTuple):
    """Buffers are those of the kernel; `row_extents` are the dimensions of the result before its
    columns. `weights` is a place among the parameters, of the shape (taps, depth, columns), and
    `right` the buffer there where it is an activation, one matrix for each image."""

    shape: ProductShape
    row_extents: tuple[int, ...]
    source: Any
    weights: int
    sums: Any
    stages: tuple[Stage, ...]
    right: Any = None

    @property
    def is_convolution(self) -> bool:
        """Returns whether rows are positions of images, and no dimensions of a matrix product."""
        return len(self.row_extents) == _IMAGE and self.row_extents[1:] == self.shape.result

    def row_at(self, image: Any, row: Any) -> list[Any]:
        """The indices of a row of a matrix product."""
        if self.right is not None:
            return [*self.image_at(image), row]
        return _unravelled(row, self.row_extents)

    def image_at(self, image: Any) -> list[Any]:
        """The indices of one of the matrices that are multiplied by one."""
        return _unravelled(image, self.row_extents[:-1])

    @property
    def result(self) -> Any:
        """The buffer of the last stage, or of the sums."""
        return self.stages[-1].buffer if self.stages else self.sums


def _unravelled(place: Any, extents: Sequence[int]) -> list[Any]:
    found = []
    for extent in reversed(extents):
        found.append(place % extent)
        place = place // extent
    return found[::-1]


def product_of(function: Any) -> Product | None:
    """Returns what the kernel multiplies; None where it is no such product."""
    blocks = [*blocks_of(function)]
    places = [at for at, block in enumerate(blocks) if _loops(block)[1]]
    if len(places) != 1 or places[0] > 1:
        return None
    (at,) = places
    multiplied = _multiplied(blocks[at])
    if multiplied is None:
        return None
    left, right = multiplied
    parameters = list(function.params)
    weights = next((n for n, each in enumerate(parameters) if each.same_as(right.source)), None)
    constants = {int(n) for n in (function.attrs or {}).get(ATTRIBUTE, ())}
    stages = _stages(blocks[at], blocks[at + 1 :])
    if weights is None or stages is None:
        return None
    is_packed = weights in constants
    found = _reading(blocks[at], is_constant=is_packed)(blocks[at], blocks[:at], left, right)
    if found is None or not any(found[1].same_as(each) for each in parameters):
        return None
    shape, source, row_extents = found
    sums, given = blocks[at].body.buffer, None if is_packed else right.source
    return Product(shape, row_extents, source, weights, sums, stages, given)


def blocks_of(function: Any) -> Iterator[Any]:
    """Yields the blocks below the root, up to the first statement that is none."""
    if not isinstance(function.body, SBlockRealize):
        return
    body = function.body.block.body
    for nest in getattr(body, "seq", [body]):
        inner = nest
        while isinstance(inner, For):
            inner = inner.body
        if not isinstance(inner, SBlockRealize) or not isinstance(inner.block.body, BufferStore):
            return
        yield inner.block


def _loops(block: Any) -> tuple[list[Any], list[Any]]:
    """The variables over the result, and those that are summed up over."""
    kinds = IterVar.DataPar, IterVar.CommReduce
    return tuple(  # type: ignore[return-value]
        [v for v in block.iter_vars if int(v.iter_type) == kind] for kind in kinds
    )


def _multiplied(block: Any) -> tuple[Any, Any] | None:
    """The loads whose products are added up in float32."""
    match block.body.value:
        case Add(a=TensorLoad() as so_far, b=Mul(a=TensorLoad() as left, b=TensorLoad() as right)):
            kinds = {str(each.source.dtype) for each in (so_far, left, right)}
            is_sum = so_far.source.same_as(block.body.buffer)
            return (left, right) if is_sum and kinds == {_FLOAT} else None
        case _:
            return None


def _stages(sums: Any, blocks: Sequence[Any]) -> tuple[Stage, ...] | None:
    """The blocks after the sums, where each works number by number on a result of their shape."""
    extents = _extents(_loops(sums)[0])
    found: list[Stage] = []
    for block in blocks:
        over, summed = _loops(block)
        variables = [v.var for v in over]
        own = [*map(_same, block.body.indices, variables)]
        if summed or _extents(over) != extents or not all(own) or len(own) != len(extents):
            return None
        found.append(Stage(block.body.buffer, tuple(variables), block.body.value))
    return tuple(found)


def _same(one: Any, other: Any) -> bool:
    return bool(one.same_as(other))


def _extents(variables: Sequence[Any]) -> tuple[int, ...]:
    return tuple(int(v.dom.extent) for v in variables)


def _is_convolution(block: Any) -> bool:
    return tuple(map(len, _loops(block))) == _CONVOLUTION_LOOPS


_Found = tuple[ProductShape, Any, tuple[int, ...]] | None


def _reading(block: Any, *, is_constant: bool) -> Callable[..., _Found]:
    if not is_constant:
        return _activations
    return _convolution if _is_convolution(block) else _matrices


def _activations(block: Any, before: Sequence[Any], left: Any, right: Any) -> _Found:
    """Matrix products of equally many: (..., rows, depth) by (..., depth, columns)."""
    over, summed = _loops(block)
    variables = [v.var for v in over]
    if before or len(summed) != 1 or len(variables) <= 2:  # noqa: PLR2004
        return None
    depth, columns = summed[0].var, variables[-1]
    wanted = [*variables[:-1], depth], [*variables[:-2], depth, columns]
    if not all(map(_reads, (left, right), wanted)):
        return None
    *images, height, width = _extents(over)
    extents = Extents(height, 1)
    shape = ProductShape(math.prod(images), extents, int(summed[0].dom.extent), extents, width)
    return shape, left.source, (*images, height)


def _reads(load: Any, indices: Sequence[Any]) -> bool:
    return len(load.indices) == len(indices) and all(map(_same, load.indices, indices))


def _matrices(block: Any, before: Sequence[Any], left: Any, right: Any) -> _Found:
    """A matrix product: (..., rows, depth) by (depth, columns)."""
    over, summed = _loops(block)
    variables = [v.var for v in over]
    if before or len(summed) != 1 or len(right.indices) != 2:  # noqa: PLR2004
        return None
    depth = summed[0].var
    wanted = [*variables[:-1], depth], [depth, variables[-1]]
    if not all(map(_reads, (left, right), wanted)):
        return None
    *rows, columns = _extents(over)
    extents = Extents(math.prod(rows), 1)
    shape = ProductShape(1, extents, int(summed[0].dom.extent), extents, columns)
    return shape, left.source, tuple(rows)


def _convolution(block: Any, before: Sequence[Any], left: Any, right: Any) -> _Found:
    """A convolution with channels last."""
    over, summed = ([v.var for v in kind] for kind in _loops(block))
    image, height, width, columns = over
    rows, across, depth = summed
    weights = [rows, across, depth, columns]
    is_ours = len(left.indices) == len(right.indices) == len(weights) and all(
        map(_same, [*right.indices, left.indices[0], left.indices[3]], [*weights, image, depth])
    )
    steps = [
        _linear(index, pair)
        for index, pair in zip(left.indices[1:3], ((height, rows), (width, across)), strict=True)
    ]
    if not is_ours or None in steps:
        return None
    source, padding = padding_of(before, left.source)
    if source is None:
        return None
    (*_, channels), images = map(int, source.shape), int(source.shape[0])
    extents = _extents(_loops(block)[0])
    window = _extents(_loops(block)[1])
    strides, dilations = zip(*[step for step in steps if step is not None], strict=True)
    shape = ProductShape(
        images=images,
        source=Extents(int(source.shape[1]), int(source.shape[2])),
        channels=channels,
        result=Extents(*extents[1:3]),
        out_channels=extents[3],
        window=Extents(*window[:2]),
        stride=Extents(*strides),
        dilation=Extents(*dilations),
        padding=padding,
    )
    is_whole = window[2] == channels and extents[0] == images
    return (shape, source, extents[:3]) if is_whole else None


def _linear(index: Any, variables: Sequence[Any]) -> tuple[int, int] | None:
    """The factors of the two variables, where the index is their sum and no more."""
    found = list(sym.detect_linear_equation(index, list(variables)))
    if len(found) != 3 or not all(isinstance(each, IntImm) for each in found):  # noqa: PLR2004
        return None
    first, second, rest = map(int, found)
    return (first, second) if rest == 0 and first > 0 and second > 0 else None
