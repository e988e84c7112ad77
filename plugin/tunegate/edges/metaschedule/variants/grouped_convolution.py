"""Finds a grouped convolution of float32 with channels last in a function."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import tvm
from tvm.s_tir import SBlockRealize
from tvm.sym import Analyzer
from tvm.tirx import BufferStore, For, IterVar, SeqStmt
from tvm.tirx.analysis import undefined_vars

from tunegate.edges.metaschedule.variants.channel_vectors import Groups

_DIMENSIONS = 4
_LOOPS = [IterVar.DataPar] * _DIMENSIONS + [IterVar.CommReduce] * 3
_TYPE = "float32"


class GroupedConvolution(NamedTuple):
    """The convolution is the nest at `place` among those of the function. `image` are the variables
    batch, height, width and channel out, of these `extents`; `window` those of the height and width
    of the window and of the channel in. `pixel` is where it reads: the indices without the channel.
    """

    nests: tuple[Any, ...]
    place: int
    groups: Groups
    image: tuple[Any, ...]
    window: tuple[Any, ...]
    extents: tuple[int, ...]
    pixel: tuple[Any, ...]
    image_buffer: Any
    weights: Any
    weight_extents: tuple[int, ...]
    output: Any

    @property
    def loop_type(self) -> str:
        return str(self.image[0].ty)


def grouped_convolution(main: Any) -> GroupedConvolution | None:
    """The only one of the function; None where there is none, or something else in its place."""
    if not isinstance(main.body, SBlockRealize):
        return None
    body = main.body.block.body
    nests = tuple(body.seq) if isinstance(body, SeqStmt) else (body,)
    found = [
        convolution
        for place, nest in enumerate(nests)
        if (convolution := _convolution(nests, place, nest)) is not None
    ]
    return found[0] if len(found) == 1 else None


def _convolution(nests: tuple[Any, ...], place: int, nest: Any) -> GroupedConvolution | None:
    while isinstance(nest, For):
        nest = nest.body
    if not isinstance(nest, SBlockRealize):
        return None
    block = nest.block
    if [int(v.iter_type) for v in block.iter_vars] != _LOOPS or len(block.reads) != 2:  # noqa: PLR2004
        return None
    product = _product(block.body)
    if product is None:
        return None
    pixel, weights = product
    variables = tuple(v.var for v in block.iter_vars)
    found = GroupedConvolution(
        nests=nests,
        place=place,
        groups=_groups(pixel.source, weights.source),
        image=variables[:4],
        window=variables[4:],
        extents=tuple(int(v.dom.extent) for v in block.iter_vars[:4]),
        pixel=tuple(pixel.indices[:3]),
        image_buffer=pixel.source,
        weights=weights.source,
        weight_extents=_extents(weights.source),
        output=block.body.buffer,
    )
    is_it = _is_grouped(found, pixel.indices[3], weights.indices, block.body.indices)
    return found if is_it else None


def _product(store: Any) -> tuple[Any, Any] | None:
    """The loads of an image and of weights, where the statement sums up their products."""
    if not isinstance(store, BufferStore) or not isinstance(store.value, tvm.tirx.Add):
        return None
    product = store.value.b
    if not isinstance(product, tvm.tirx.Mul):
        return None
    loads = (product.a, product.b)
    is_plain = all(
        isinstance(load, tvm.ir.TensorLoad)
        and str(load.source.dtype) == _TYPE
        and len(load.indices) == _DIMENSIONS
        for load in loads
    )
    return loads if is_plain and str(store.buffer.dtype) == _TYPE else None


def _groups(image: Any, weights: Any) -> Groups:
    channels_in = _extents(image)[3]
    *_, of_group, channels_out = _extents(weights)
    number = max(1, channels_in // of_group)
    return Groups(number, of_group, channels_out // number)


def _is_grouped(
    found: GroupedConvolution, channel: Any, weights: Sequence[Any], output: Sequence[Any]
) -> bool:
    """Returns whether all indices are those of a grouped convolution with channels last."""
    groups, (height, width, inside) = found.groups, found.window
    last = found.image[3]
    if groups.number == 1 or groups.number * groups.channels_out != found.extents[3]:
        return False
    is_plain = _same(weights, (height, width, inside, last)) and _same(output, found.image)
    analyzer = Analyzer()
    for variable, extent in zip(
        (last, inside), (found.extents[3], groups.channels_in), strict=True
    ):
        analyzer.bind(variable, tvm.ir.Range(0, extent))
    of_group = tvm.tirx.floordiv(last, groups.channels_out) * groups.channels_in + inside
    is_its = analyzer.can_prove_equal(channel, of_group)
    return is_plain and is_its and all(_is_free(i, (last, inside)) for i in found.pixel)


def _same(indices: Sequence[Any], variables: Sequence[Any]) -> bool:
    return all(i.same_as(v) for i, v in zip(indices, variables, strict=True))


def _is_free(index: Any, variables: Sequence[Any]) -> bool:
    """Returns whether the index does not depend on the variables."""
    used = undefined_vars(index)
    return not any(each.same_as(variable) for each in used for variable in variables)


def _extents(buffer: Any) -> tuple[int, ...]:
    return tuple(int(n) for n in buffer.shape)
