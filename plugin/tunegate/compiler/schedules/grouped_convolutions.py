"""Grouped convolutions in vectors of channels."""

import math
from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple

import tvm
from tvm import tirx
from tvm.s_tir import SBlock, SBlockRealize
from tvm.tirx import Broadcast, BufferLoad, BufferRegion, BufferStore, IterVar, Shuffle, Var

from tunegate.compiler.schedules import convolutions
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

    def span(self, groups: convolutions.Groups) -> int:
        """Returns the number of input channels that a vector of whole groups reads."""
        return self.groups * groups.channels_in

    def is_shuffled(self, groups: convolutions.Groups) -> bool:
        return self.groups > 0 and groups.channels_in * groups.channels_out > 1

    def order(self, groups: convolutions.Groups, channel: int) -> list[int]:
        """Returns, for each lane, the position of its group's `channel` among the channels read."""
        size = groups.channels_out
        return [lane // size * groups.channels_in + channel for lane in range(self.lanes)]


def channel_vectors(groups: convolutions.Groups) -> ChannelVectors | None:
    """Returns the vectors that fill registers best, None if they would be nearly empty."""
    inside = (ChannelVectors(lanes, 0) for lanes in divisors(groups.channels_out, _MAX_LANES))
    candidates = [*inside, *_spanning(groups)]
    # The shortest of equals: loops do the rest.
    best = max(candidates, key=lambda vectors: (_worth(vectors, groups), -vectors.lanes))
    return best if _share_used(best) >= _MIN_FILLED else None


def _spanning(groups: convolutions.Groups) -> Iterable[ChannelVectors]:
    if groups.channels_in > _MAX_UNROLLED:
        return
    for several in divisors(groups.number, _MAX_SPAN):
        vectors = ChannelVectors(several * groups.channels_out, several)
        if vectors.lanes <= _MAX_SPAN and vectors.span(groups) <= _MAX_SPAN:
            yield vectors


def _worth(vectors: ChannelVectors, groups: convolutions.Groups) -> float:
    return _share_used(vectors) * (_SHUFFLED if vectors.is_shuffled(groups) else 1.0)


def _share_used(vectors: ChannelVectors) -> float:
    """Returns the used share of the registers' lanes."""
    return vectors.lanes / (REGISTER * len(vectors.pieces))


def divisors(number: int, most: int) -> list[int]:
    return [divisor for divisor in range(1, most + 1) if number % divisor == 0]


# Rewrites a grouped convolution with channels last in steps on vectors of output channels. As
# written, a loop over output channels finds the group of each by a division: a tile that is no part
# of a group gathers its numbers one by one. Here the loop goes over vectors, which are parts of a
# group or several whole ones, and the weights are packed once, at build time, in reading order.
# (Grouped Spatial Pack Convolution, Gibson et al., ASAP 2020, splits all indices into group and
# channel, and packs both. With channels last an image needs no packing. Vectors that span groups
# are ours: a shuffle orders their input channels.) Every sum adds the same numbers in the same
# order.

_VECTORS = "tunegate.vectors"
_KEPT = "tunegate.kept"


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
    convolution = convolutions.grouped_convolution(function)
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

    def __init__(
        self, main: Any, convolution: convolutions.Convolution, vectors: ChannelVectors
    ) -> None:
        self._main, self._original, self._vectors = main, convolution, vectors
        self._vector = Var("v_vector", convolution.loop_type)
        self._constant = convolutions.place_of_constant(main, convolution.weights)
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
            rest = [n for n in main.attrs[convolutions.CONSTANTS] if int(n) != self._constant]
            main = main.with_attr(convolutions.CONSTANTS, rest)
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
        indices = [tirx.floordiv(last, lanes), *window, tirx.floormod(last, lanes)]
        block = SBlock(
            [
                self._axis(a, n, IterVar.DataPar)
                for a, n in zip(axes, convolution.weight_extents, strict=True)
            ],
            [self._region(convolution.weights, axes)],
            [self._region(self._packed, indices)],
            "packing",
            BufferStore(self._packed, BufferLoad(convolution.weights, axes), indices),
            annotations=convolutions.PACKING,
        )
        return self._nest(block, convolution.weight_extents)

    def _convolution(self) -> Any:
        convolution, lanes = self._original, self._vectors.lanes
        height, width, channels_in, channels_out = convolution.weight_extents
        is_spanning = self._vectors.groups > 0
        spatial = [*convolution.image[:3], self._vector]
        window = convolution.window[:2] if is_spanning else convolution.window
        extents = [*convolution.extents[:3], channels_out // lanes, height, width]
        extents += [] if is_spanning else [channels_in]
        kinds = [IterVar.DataPar] * 4 + [IterVar.CommReduce] * len(window)
        add_products, read = self._spanning() if is_spanning else self._inside()
        channels = channels_in if is_spanning else 1
        block = SBlock(
            [self._axis(*each) for each in zip([*spatial, *window], extents, kinds, strict=True)],
            [read, self._weights_region(channels)],
            [self._region(convolution.output, self._output_indices(0), last=lanes)],
            "vectors",
            self._store(lambda piece: add_products(self._sum(piece), piece)),
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
        return self._original.output.vload(self._output_indices(piece.first), dtype_of(piece.lanes))

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
            return image.vload(self._pixel(span, order[0]), dtype_of(lanes))
        # A shuffle combines two vectors of one length.
        part = math.gcd(span, REGISTER)
        first, last = min(order) // part, max(order) // part
        parts = [
            image.vload(self._pixel(span, n * part), dtype_of(part)) for n in range(first, last + 1)
        ]
        # A shuffle returns no more numbers than it takes.
        operands = parts * -(-lanes // (part * len(parts)))
        return Shuffle(operands, [tirx.const(place - first * part, "int32") for place in order])

    def _weights(self, channel: Any, piece: Piece) -> Any:
        y, x = self._original.window[:2]
        first, type_ = self._number(piece.first), dtype_of(piece.lanes)
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
        return convolutions.loops_around(block, extents, self._original.loop_type)


def dtype_of(lanes: int) -> str:
    return "float32" if lanes == 1 else f"float32x{lanes}"


def _vector_of(number: Any, lanes: int) -> Any:
    return number if lanes == 1 else Broadcast(number, lanes)
