"""Grouped convolutions in vectors of channels."""

import math
from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple

import tvm
from tvm import tirx
from tvm.s_tir import SBlock, SBlockRealize
from tvm.sym import Analyzer
from tvm.tirx import (
    Broadcast,
    BufferLoad,
    BufferRegion,
    BufferStore,
    For,
    IterVar,
    SeqStmt,
    Shuffle,
    Var,
)
from tvm.tirx.analysis import undefined_vars

from tunegate.compiler.search.workload import canonical_workload

REGISTER = 16
"""The float32 lanes of a 512-bit register. Narrower machines take several."""
_MAX_LANES, _MAX_SPAN = 128, 64
_MAX_UNROLLED = 16
"""The most input channels of a group that are unrolled."""
_SHUFFLED = 0.7
"""The value of a step on vectors that span groups, relative to one that broadcasts a number: its
factor must be shuffled first."""
_MIN_FILLED = 0.3
"""Registers emptier than this are not worth it."""


class Groups(NamedTuple):
    """`number` groups, each with these channels in and out."""

    number: int
    channels_in: int
    channels_out: int


class Piece(NamedTuple):
    """A part of a vector that fits one register: `lanes` is a power of two."""

    first: int
    lanes: int


class ChannelVectors(NamedTuple):
    """Vectors of `lanes` output channels: each a part of a group or, if `groups` > 0, that many
    whole groups."""

    lanes: int
    groups: int

    @property
    def pieces(self) -> list[Piece]:
        """The power-of-two parts of a vector: LLVM has bad code for other sizes."""
        powers_of_two: list[Piece] = []
        first = 0
        while first < self.lanes:
            rest = min(REGISTER, self.lanes - first)
            powers_of_two.append(Piece(first, 1 << (rest.bit_length() - 1)))
            first += powers_of_two[-1].lanes
        return powers_of_two

    def span(self, groups: Groups) -> int:
        """Returns the number of input channels that a vector of whole groups reads."""
        return self.groups * groups.channels_in

    def is_shuffled(self, groups: Groups) -> bool:
        return self.groups > 0 and groups.channels_in * groups.channels_out > 1

    def order(self, groups: Groups, channel: int) -> list[int]:
        """Returns, for each lane, the position of its group's `channel` among the channels read."""
        size = groups.channels_out
        return [lane // size * groups.channels_in + channel for lane in range(self.lanes)]


def channel_vectors(groups: Groups) -> ChannelVectors | None:
    """Returns the vectors that fill registers best, None if they would be nearly empty."""
    inside = (ChannelVectors(lanes, 0) for lanes in divisors(groups.channels_out, _MAX_LANES))
    candidates = [*inside, *_spanning(groups)]
    # The shortest of equals: loops do the rest.
    best = max(candidates, key=lambda vectors: (_worth(vectors, groups), -vectors.lanes))
    return best if _share_used(best) >= _MIN_FILLED else None


def _spanning(groups: Groups) -> Iterable[ChannelVectors]:
    if groups.channels_in > _MAX_UNROLLED:
        return
    for several in divisors(groups.number, _MAX_SPAN):
        vectors = ChannelVectors(several * groups.channels_out, several)
        if vectors.lanes <= _MAX_SPAN and vectors.span(groups) <= _MAX_SPAN:
            yield vectors


def _worth(vectors: ChannelVectors, groups: Groups) -> float:
    return _share_used(vectors) * (_SHUFFLED if vectors.is_shuffled(groups) else 1.0)


def _share_used(vectors: ChannelVectors) -> float:
    """Returns the used share of the registers' lanes."""
    return vectors.lanes / (REGISTER * len(vectors.pieces))


def divisors(number: int, most: int) -> list[int]:
    return [divisor for divisor in range(1, most + 1) if number % divisor == 0]


# Matches a float32 convolution with channels last in a function.

_DIMENSIONS = 4
_LOOPS = [IterVar.DataPar] * _DIMENSIONS + [IterVar.CommReduce] * 3
_TYPE = "float32"


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
    grouped = [convolution for convolution in convolutions(main) if convolution.groups.number > 1]
    return grouped[0] if len(grouped) == 1 else None


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


# Rewrites a grouped convolution with channels last in steps on vectors of output channels. As
# written, a loop over output channels finds the group of each by a division: a tile that is no part
# of a group gathers its numbers one by one. Here the loop goes over vectors, which are parts of a
# group or several whole ones, and the weights are packed once, at build time, in reading order.
# (Grouped Spatial Pack Convolution, Gibson et al., ASAP 2020, splits all indices into group and
# channel, and packs both. With channels last an image needs no packing. Vectors that span groups
# are ours: a shuffle orders their input channels.) Every sum adds the same numbers in the same
# order.

_CONSTANTS = "layout_free_buffers"
_VECTORS = "tunegate.vectors"
_KEPT = "tunegate.kept"
PACKING = {"meta_schedule.layout_rewrite_preproc": True, "schedule_rule": "None"}
"""Marks a block that is split off the kernel and scheduled by nobody."""


class GroupVectors(NamedTuple):
    """`function` is the original in steps of this many numbers. If `groups` > 0 a step covers that
    many whole groups; it `is_shuffled` if these have several channels."""

    function: Any
    lanes: int
    groups: int
    is_shuffled: bool

    @property
    def module(self) -> Any:
        """Returns the function as a workload of its own."""
        return canonical_workload(self.function).module


def group_vectors(function: Any) -> GroupVectors | None:
    """Returns the function in steps of vectors; None if it has no float32 grouped convolution with
    channels last, or its vectors would be nearly empty."""
    convolution = grouped_convolution(function)
    vectors = None if convolution is None else channel_vectors(convolution.groups)
    if convolution is None or vectors is None:
        return None
    function = _Steps(function, convolution, vectors).function()
    return GroupVectors(function, *vectors, vectors.is_shuffled(convolution.groups))


def vector_block(schedule: Any) -> Any:
    """Returns the only block of vector steps."""
    blocks = schedule.get_child_blocks(schedule.get_sblock("root"))
    (with_vectors,) = (block for block in blocks if _VECTORS in schedule.get(block).annotations)
    return with_vectors


def keep_vectors(schedule: Any) -> None:
    """Keeps the compiler from making vectors of vectors: an annotated loop stays a loop."""
    schedule.annotate(schedule.get_loops(vector_block(schedule))[-1], _KEPT, 1)


class _Steps:
    """Rewrites the function with the convolution in steps of these vectors."""

    def __init__(self, main: Any, convolution: Convolution, vectors: ChannelVectors) -> None:
        self._main, self._original, self._vectors = main, convolution, vectors
        self._vector = Var("v_vector", convolution.loop_type)
        self._constant = place_of_constant(main, convolution.weights)
        self._packed = None if self._constant is None else self._packed_buffer()

    def function(self) -> Any:
        convolution, root = self._original, self._main.body.block
        nests = list(convolution.nests)
        nests[convolution.place] = self._convolution()
        buffers = list(root.alloc_buffers)
        main = self._main
        if self._packed is not None:
            nests.insert(0, self._packing())
            buffers.append(self._packed)
            rest = [n for n in main.attrs[_CONSTANTS] if int(n) != self._constant]
            main = main.with_attr(_CONSTANTS, rest)
        body = tirx.SeqStmt(nests) if len(nests) > 1 else nests[0]
        whole = SBlock([], root.reads, root.writes, root.name_hint, body, None, buffers)
        return main.with_body(SBlockRealize([], True, whole))

    def _packed_buffer(self) -> Any:
        *window, channels_out = self._original.weight_extents
        lanes = self._vectors.lanes
        shape = [channels_out // lanes, *window, lanes]
        return tirx.decl_buffer([self._number(n) for n in shape], "float32", "packed")

    def _packing(self) -> Any:
        convolution, lanes = self._original, self._number(self._vectors.lanes)
        axes = [Var(f"v_{n}", convolution.loop_type) for n in range(4)]
        *window, last = axes
        written = [tirx.floordiv(last, lanes), *window, tirx.floormod(last, lanes)]
        block = SBlock(
            [
                self._axis(a, n, IterVar.DataPar)
                for a, n in zip(axes, convolution.weight_extents, strict=True)
            ],
            [self._region(convolution.weights, axes)],
            [self._region(self._packed, written)],
            "packing",
            BufferStore(self._packed, BufferLoad(convolution.weights, axes), written),
            annotations=PACKING,
        )
        return self._nest(block, convolution.weight_extents)

    def _convolution(self) -> Any:
        convolution, lanes = self._original, self._vectors.lanes
        height, width, channels_in, channels_out = convolution.weight_extents
        is_spanning = self._vectors.groups > 0
        spatial = [*convolution.image[:3], self._vector]
        reduced = convolution.window[:2] if is_spanning else convolution.window
        extents = [*convolution.extents[:3], channels_out // lanes, height, width]
        extents += [] if is_spanning else [channels_in]
        kinds = [IterVar.DataPar] * 4 + [IterVar.CommReduce] * len(reduced)
        added, read = self._spanning() if is_spanning else self._inside()
        channels = channels_in if is_spanning else 1
        block = SBlock(
            [self._axis(*each) for each in zip([*spatial, *reduced], extents, kinds, strict=True)],
            [read, self._weights_region(channels)],
            [self._region(convolution.output, self._output_indices(0), last=lanes)],
            "vectors",
            self._store(lambda piece: added(self._sum(piece), piece)),
            self._store(lambda piece: _vector_of(tirx.const(0.0, "float32"), piece.lanes)),
            annotations={_VECTORS: lanes},
        )
        return self._nest(block, extents)

    def _store(self, value: Callable[[Piece], Any]) -> Any:
        output = self._original.output
        stores = [
            output.vstore(self._output_indices(p.first), value(p)) for p in self._vectors.pieces
        ]
        return tirx.SeqStmt(stores) if len(stores) > 1 else stores[0]

    def _sum(self, piece: Piece) -> Any:
        return self._original.output.vload(self._output_indices(piece.first), _type(piece.lanes))

    def _output_indices(self, first: int) -> list[Any]:
        start = self._vector * self._number(self._vectors.lanes)
        return [*self._original.image[:3], start + self._number(first) if first else start]

    def _inside(self) -> tuple[Callable[[Any, Piece], Any], Any]:
        """Returns the step for vectors inside a group: one number of the image times a vector of
        weights."""
        convolution, channel = self._original, self._original.window[2]
        in_group = convolution.groups.channels_out // self._vectors.lanes
        group = tirx.floordiv(self._vector, self._number(in_group))
        pixel = [*convolution.pixel, group * self._number(convolution.groups.channels_in) + channel]

        def add_products(sum_: Any, piece: Piece) -> Any:
            number = _vector_of(BufferLoad(convolution.image_buffer, pixel), piece.lanes)
            return sum_ + number * self._weights(channel, piece)

        return add_products, self._region(convolution.image_buffer, pixel)

    def _spanning(self) -> tuple[Callable[[Any, Piece], Any], Any]:
        """Returns the step for vectors that span groups: for each input channel, a shuffled vector
        with the number of each group."""
        convolution, vectors = self._original, self._vectors
        span = vectors.span(convolution.groups)

        def add_products(sum_: Any, piece: Piece) -> Any:
            for channel in range(convolution.groups.channels_in):
                order = vectors.order(convolution.groups, channel)[piece.first :][: piece.lanes]
                numbers = self._shuffle(order, span)
                sum_ = sum_ + numbers * self._weights(self._number(channel), piece)
            return sum_

        return add_products, self._region(convolution.image_buffer, self._pixel(span, 0), last=span)

    def _pixel(self, span: int, first: int) -> list[Any]:
        start = self._vector * self._number(span)
        return [*self._original.pixel, start + self._number(first) if first else start]

    def _shuffle(self, order: list[int], span: int) -> Any:
        """Returns the numbers at these positions of the channels read."""
        image, lanes = self._original.image_buffer, len(order)
        if order == list(range(order[0], order[0] + lanes)):
            return image.vload(self._pixel(span, order[0]), _type(lanes))
        # A shuffle combines two vectors of one length.
        part = math.gcd(span, REGISTER)
        first, last = min(order) // part, max(order) // part
        parts = [
            image.vload(self._pixel(span, n * part), _type(part)) for n in range(first, last + 1)
        ]
        # A shuffle returns no more numbers than it takes.
        repeated = parts * -(-lanes // (part * len(parts)))
        return Shuffle(repeated, [tirx.const(place - first * part, "int32") for place in order])

    def _weights(self, channel: Any, piece: Piece) -> Any:
        y, x = self._original.window[:2]
        first, type_ = self._number(piece.first), _type(piece.lanes)
        if self._packed is not None:
            return self._packed.vload([self._vector, y, x, channel, first], type_)
        return self._original.weights.vload(
            [y, x, channel, self._output_indices(piece.first)[-1]], type_
        )

    def _weights_region(self, channels: int) -> Any:
        y, x, channel = self._original.window
        inside = (
            (self._number(0), channels) if channels > 1 or self._vectors.groups else (channel, 1)
        )
        lanes, window = self._vectors.lanes, [(y, 1), (x, 1), inside]
        if self._packed is not None:
            buffer, ranges = self._packed, [(self._vector, 1), *window, (self._number(0), lanes)]
        else:
            buffer, ranges = self._original.weights, [*window, (self._output_indices(0)[-1], lanes)]
        return BufferRegion(buffer, [self._range(start, size) for start, size in ranges])

    def _region(self, buffer: Any, indices: Sequence[Any], last: int = 1) -> Any:
        *others, final = indices
        ranges = [self._range(index, 1) for index in others]
        return BufferRegion(buffer, [*ranges, self._range(final, last)])

    def _range(self, start: Any, size: int) -> Any:
        return tvm.ir.Range.from_min_extent(start, self._number(size))

    def _axis(self, variable: Any, extent: int, kind: int) -> Any:
        return IterVar(tvm.ir.Range(self._number(0), self._number(extent)), variable, kind)

    def _number(self, value: int) -> Any:
        return tirx.const(value, self._original.loop_type)

    def _nest(self, block: Any, extents: Sequence[int]) -> Any:
        return loops_around(block, extents, self._original.loop_type)


def _type(lanes: int) -> str:
    return "float32" if lanes == 1 else f"float32x{lanes}"


def loops_around(block: Any, extents: Sequence[int], loop_type: str) -> Any:
    """Returns a block inside a serial loop for each of its axes."""
    loops = [Var(f"i{n}", loop_type) for n in range(len(extents))]
    nest = SBlockRealize(loops, True, block)
    for loop, extent in reversed(list(zip(loops, extents, strict=True))):
        first, count = (tirx.const(number, loop_type) for number in (0, extent))
        nest = For(loop, first, count, tirx.ForKind.SERIAL, nest)
    return nest


def _vector_of(number: Any, lanes: int) -> Any:
    return number if lanes == 1 else Broadcast(number, lanes)


def place_of_constant(main: Any, weights: Any) -> int | None:
    """Returns the index of the argument if it is a constant of the model."""
    places = (main.attrs or {}).get(_CONSTANTS, ())
    return next((int(n) for n in places if main.params[int(n)].same_as(weights)), None)
