"""Matches float32 convolutions with channels last in a function, for those who rewrite them."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import tvm
from tvm import tirx
from tvm.s_tir import SBlockRealize
from tvm.sym import Analyzer
from tvm.tirx import BufferStore, For, IterVar, SeqStmt, Var
from tvm.tirx.analysis import undefined_vars

_DIMENSIONS = 4
_LOOPS = [IterVar.DataPar] * _DIMENSIONS + [IterVar.CommReduce] * 3
_TYPE = "float32"
CONSTANTS = "layout_free_buffers"
"""The attribute of a function with the numbers of its constant arguments."""
PACKING = {"meta_schedule.layout_rewrite_preproc": True, "schedule_rule": "None"}
"""Marks a block that is split off the kernel and scheduled by nobody."""


class Groups(NamedTuple):
    """`number` groups, each with these channels in and out."""

    number: int
    channels_in: int
    channels_out: int


class Convolution(NamedTuple):
    """A convolution of one group or several. It is the function's loop nest number `place`. `image`
    are the variables batch, height, width and output channel, with these `extents`; `window` those
    of window height, window width and input channel. `pixel` are the indices it reads at, without
    the channel."""

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


def grouped_convolution(main: Any) -> Convolution | None:
    """Returns the function's only grouped convolution, None if it has none or something else."""
    matches = [convolution for convolution in convolutions(main) if convolution.groups.number > 1]
    return matches[0] if len(matches) == 1 else None


def window_of_three(main: Any) -> Convolution | None:
    """Returns the function's only convolution if it has one group, a window of 3x3 neighbours and
    steps of one; None for any other."""
    all_convolutions = convolutions(main)
    if len(all_convolutions) != 1 or all_convolutions[0].groups.number != 1:
        return None
    (only,) = all_convolutions
    (batch, y, x, _), (height, width, _) = only.image, only.window
    is_same = Analyzer().can_prove_equal
    is_it = only.weight_extents[:2] == (3, 3) and all(
        is_same(*each) for each in zip(only.pixel, (batch, y + height, x + width), strict=True)
    )
    return only if is_it else None


def convolutions(main: Any) -> list[Convolution]:
    """Returns the convolutions of the function, in order."""
    if not isinstance(main.body, SBlockRealize):
        return []
    body = main.body.block.body
    nests = tuple(body.seq) if isinstance(body, SeqStmt) else (body,)
    return [
        convolution
        for place, nest in enumerate(nests)
        if (convolution := _convolution(nests, place, nest)) is not None
    ]


def _convolution(nests: tuple[Any, ...], place: int, nest: Any) -> Convolution | None:
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
    convolution = Convolution(
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
    is_it = _is_convolution(convolution, pixel.indices[3], weights.indices, block.body.indices)
    return convolution if is_it else None


def _product(store: Any) -> tuple[Any, Any] | None:
    """Returns the loads of image and weights if the statement sums up their products."""
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


def _is_convolution(
    convolution: Convolution, channel: Any, weights: Sequence[Any], output: Sequence[Any]
) -> bool:
    """Returns whether all indices are those of a convolution with channels last."""
    groups, (height, width, inside) = convolution.groups, convolution.window
    last = convolution.image[3]
    if groups.number * groups.channels_out != convolution.extents[3]:
        return False
    is_plain = _are_same(weights, (height, width, inside, last)) and _are_same(
        output, convolution.image
    )
    analyzer = Analyzer()
    for variable, extent in zip(
        (last, inside), (convolution.extents[3], groups.channels_in), strict=True
    ):
        analyzer.bind(variable, tvm.ir.Range(0, extent))
    of_group = tvm.tirx.floordiv(last, groups.channels_out) * groups.channels_in + inside
    is_its = analyzer.can_prove_equal(channel, of_group)
    return is_plain and is_its and all(_is_free(i, (last, inside)) for i in convolution.pixel)


def _are_same(indices: Sequence[Any], variables: Sequence[Any]) -> bool:
    return all(i.same_as(v) for i, v in zip(indices, variables, strict=True))


def _is_free(index: Any, variables: Sequence[Any]) -> bool:
    """Returns whether the index does not depend on the variables."""
    variables_of_index = undefined_vars(index)
    return not any(each.same_as(variable) for each in variables_of_index for variable in variables)


def _extents(buffer: Any) -> tuple[int, ...]:
    return tuple(int(n) for n in buffer.shape)


def loops_around(block: Any, extents: Sequence[int], loop_type: str) -> Any:
    """Returns a block inside a serial loop for each of its axes."""
    loops = [Var(f"i{n}", loop_type) for n in range(len(extents))]
    nest = SBlockRealize(loops, True, block)
    for loop, extent in reversed(list(zip(loops, extents, strict=True))):
        first, count = (tirx.const(number, loop_type) for number in (0, extent))
        nest = For(loop, first, count, tirx.ForKind.SERIAL, nest)
    return nest


def place_of_constant(main: Any, weights: Any) -> int | None:
    """Returns the index of the argument if it is a constant of the model."""
    places = (main.attrs or {}).get(CONSTANTS, ())
    return next((int(n) for n in places if main.params[int(n)].same_as(weights)), None)
