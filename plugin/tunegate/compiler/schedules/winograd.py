"""Computes 3x3 convolutions with fewer products (Winograd), where that takes fewer cycles.

Lavin and Gray, Fast Algorithms for Convolutional Neural Networks (CVPR 2016): a tile of m x m
outputs takes (m + 2)^2 products for each pair of channels in place of 9 m^2, and sums before and
after. The weights are transformed once, at build time.
"""

from __future__ import annotations

import logging
import math
from collections.abc import Callable, Collection, Iterator, Sequence
from functools import partial
from typing import Any, NamedTuple

import tvm
from tvm import tirx
from tvm.s_tir import SBlock, SBlockRealize, Schedule
from tvm.tirx import Broadcast, BufferLoad, BufferRegion, BufferStore, IterVar, Var

from tunegate.compiler.schedules import convolutions, product_tiles, unscheduled
from tunegate.compiler.schedules.algorithm_variants import asked_algorithm
from tunegate.compiler.schedules.convolutions import CONSTANTS, Convolution, place_of_constant
from tunegate.compiler.schedules.grouped_convolutions import REGISTER, dtype_of
from tunegate.compiler.targets import threads_of, vector_registers
from tunegate.tune.prior import VectorRegisters

_logger = logging.getLogger(__name__)

_MAIN = "main"
_SYMBOL = "global_symbol"
_WINDOW = 3
_IMAGE, _INPUTS, _PRODUCTS = "winograd_image", "winograd_inputs", "winograd_products"
_OUTPUTS, _UNTILED = "winograd_outputs", "winograd_untiled"


def with_winograd(module: Any, target: Any, leaves: Collection[str] = ()) -> Any:
    """Returns the module, or a changed copy if it has such convolutions. Scheduled functions and
    those named in `leaves` stay as they are."""
    return unscheduled.with_unscheduled(module, partial(_tiled_if_faster, target=target), leaves)


def _tiled_if_faster(function: Any, target: Any) -> Any | None:
    if asked_algorithm(function):
        return None
    try:
        convolution = convolutions.window_of_three(function)
        if convolution is None or place_of_constant(function, convolution.weights) is None:
            return None
        tiling = best_tiling(_layer(convolution), vector_registers(target), threads_of(target))
        return None if tiling is None else schedule_tiled(function, convolution, tiling, target)
    except Exception:
        _logger.info("a convolution stays direct", exc_info=True)
        return None


def schedule_tiled(function: Any, convolution: Convolution, tiling: Tiling, target: Any) -> Any:
    """Returns the scheduled function with its convolution in these tiles."""
    main = _schedule(_Tiles(function, convolution, tiling).function(), tiling, target)
    return unscheduled.with_symbol_of(main, function).with_attr(unscheduled.IS_SCHEDULED, True)


# The transforms along one axis: of the image (m + 2 numbers to m + 2), of the sums (m + 2 to m),
# and of the weights (3 to m + 2) by rows of factors. The points are 0, 1, -1, 2, -2 and infinity,
# the first three and the last for two outputs.


class Transform(NamedTuple):
    """F(m x m, 3 x 3) with m `outputs`."""

    outputs: int
    image: Callable[[Sequence[Any]], list[Any]]
    sums: Callable[[Sequence[Any]], list[Any]]
    weights: tuple[tuple[float, float, float], ...]

    @property
    def points(self) -> int:
        return self.outputs + _WINDOW - 1


def _image_for_two(d: Sequence[Any]) -> list[Any]:
    return [d[0] - d[2], d[1] + d[2], d[2] - d[1], d[1] - d[3]]


def _sums_to_two(s: Sequence[Any]) -> list[Any]:
    return [s[0] + s[1] + s[2], s[1] - s[2] - s[3]]


def _image_for_four(d: Sequence[Any]) -> list[Any]:
    even, odd = d[4] - _times(4, d[2]), d[3] - _times(4, d[1])
    other, twice = d[4] - d[2], _times(2, d[3] - d[1])
    first = _times(4, d[0]) - _times(5, d[2]) + d[4]
    last = _times(4, d[1]) - _times(5, d[3]) + d[5]
    return [first, even + odd, even - odd, other + twice, other - twice, last]


def _sums_to_four(s: Sequence[Any]) -> list[Any]:
    near, far = s[1] + s[2], s[3] + s[4]
    near_odd, far_odd = s[1] - s[2], s[3] - s[4]
    return [
        s[0] + near + far,
        near_odd + _times(2, far_odd),
        near + _times(4, far),
        near_odd + _times(8, far_odd) + s[5],
    ]


def _times(factor: float, number: Any) -> Any:
    lanes = tvm.DataType(str(number.ty.dtype)).lanes
    constant = tirx.const(float(factor), "float32")
    return number * (Broadcast(constant, lanes) if lanes > 1 else constant)


TWO = Transform(
    2,
    _image_for_two,
    _sums_to_two,
    ((1, 0, 0), (1 / 2, 1 / 2, 1 / 2), (1 / 2, -1 / 2, 1 / 2), (0, 0, 1)),
)
FOUR = Transform(
    4,
    _image_for_four,
    _sums_to_four,
    (
        (1 / 4, 0, 0),
        (-1 / 6, -1 / 6, -1 / 6),
        (-1 / 6, 1 / 6, -1 / 6),
        (1 / 24, 1 / 12, 1 / 6),
        (1 / 24, -1 / 12, 1 / 6),
        (0, 0, 1),
    ),
)


# The rule: cycles are counted for each form, and the fewest win. Nothing is timed, so base and head
# share the choice, and a build is the same on every machine with these registers.

_FUSED_PER_CYCLE = 2
"""Vectors that are multiplied and added in a cycle, and vectors that are read."""
_LATENCY = 4
"""Cycles until a sum can be added to again."""
_MOVED = 4
"""Cycles to read or write a vector of an image or a transformed tile: most lie in the L2 cache."""
_BYTES_PER_CYCLE = 3.5
"""Bytes of weights that one core reads in a cycle from beyond its L2 cache."""
_L2_BYTES = 1 << 20
"""The weights that stay in it from one block to the next."""
_MOST_BYTES = 1 << 19
"""The transformed image of a block stays in it too."""
_FLOAT_BYTES = 4
_MOST_VECTORS = 4
_WORTH_IT = 0.85
"""Tiles must be clearly faster: the count is no measurement, and their numbers are less exact."""


class Layer(NamedTuple):
    """The extents of the outputs, (batch, height, width, channels out), and the channels read."""

    batch: int
    height: int
    width: int
    channels_out: int
    channels_in: int


def _layer(convolution: Convolution) -> Layer:
    batch, height, width, channels_out = convolution.extents
    return Layer(batch, height, width, channels_out, convolution.weight_extents[2])


class Tiling(NamedTuple):
    """`rows` rows of tiles form a block; `columns` tiles by `lanes` channels are summed in
    registers."""

    transform: Transform
    rows: int
    columns: int
    lanes: int


def best_tiling(layer: Layer, registers: VectorRegisters, threads: int) -> Tiling | None:
    """Returns the tiling that takes the fewest cycles, None if the direct form takes as few."""
    if layer.channels_out % registers.lanes:
        return None
    direct = _direct_cycles(layer, registers)
    pairs = ((tiled_cycles(layer, t, registers, threads), t) for t in _tilings(layer, registers))
    cycles, best = min(pairs, key=lambda each: (each[0], -each[1].columns))
    return best if cycles < _WORTH_IT * direct else None


def _tilings(layer: Layer, registers: VectorRegisters) -> Iterator[Tiling]:
    for transform in (TWO, FOUR):
        across = -(-layer.width // transform.outputs)
        for rows in range(1, -(-layer.height // transform.outputs) + 1):
            size = transform.points**2 * rows * across * layer.channels_in * _FLOAT_BYTES
            if rows > 1 and size > _MOST_BYTES:
                break
            for vectors in range(1, _MOST_VECTORS + 1):
                if layer.channels_out % (vectors * registers.lanes):
                    continue
                most = product_tiles.most_columns(vectors, registers)
                for columns in range(1, min(most, rows * across) + 1):
                    yield Tiling(transform, rows, columns, vectors * registers.lanes)


def tiled_cycles(layer: Layer, tiling: Tiling, registers: VectorRegisters, threads: int) -> float:
    """Returns the cycles of a core for the layer in these tiles."""
    transform, (places, rows) = tiling.transform, _places(layer, tiling)
    points, outputs = transform.points**2, transform.outputs**2
    blocks = layer.batch * -(-rows // tiling.rows)
    tiles = blocks * -(-places // tiling.columns) * tiling.columns
    vectors = tiling.lanes // registers.lanes
    steps = points * tiles / tiling.columns * layer.channels_out / tiling.lanes
    products = steps * layer.channels_in * _step_cycles(tiling.columns, vectors)
    # Each tile of a few channels is copied and transformed, then transformed back and written.
    reads = (2 * outputs + 2 * points) * layer.channels_in / _lanes_in(layer, registers)
    writes = (points + 3 * outputs) * layer.channels_out / registers.lanes
    size = points * layer.channels_in * layer.channels_out * _FLOAT_BYTES
    weights = size + (blocks - 1) * max(0, size - _L2_BYTES)
    uneven = -(-blocks // threads) * threads / blocks
    cycles = products + tiles * (reads + writes) * _MOVED
    return uneven * cycles + weights / _BYTES_PER_CYCLE


def _direct_cycles(layer: Layer, registers: VectorRegisters) -> float:
    """Returns the cycles of a core for the layer in the tiles that it has otherwise."""
    *_, channels_in = layer
    extents = layer[:4]
    tile = product_tiles.register_tile(extents, range(3), registers)
    if tile is None:
        return math.inf
    size = _WINDOW**2 * channels_in
    steps = math.prod(extents) / tile.columns / tile.lanes * size
    products = steps * _step_cycles(tile.columns, tile.lanes // registers.lanes)
    reads, writes = channels_in / _lanes_in(layer, registers), layer.channels_out / registers.lanes
    transfers = math.prod(layer[:3]) * (2 * reads + writes)
    weights = size * layer.channels_out * _FLOAT_BYTES
    return products + transfers * _MOVED + weights / _BYTES_PER_CYCLE


def _lanes_in(layer: Layer, registers: VectorRegisters) -> int:
    return math.gcd(layer.channels_in, registers.lanes)


def _step_cycles(columns: int, vectors: int) -> float:
    """Returns the cycles in which each sum of a tile in registers gets one more product."""
    sums, read = columns * vectors, columns + vectors
    return max(sums, read, _FUSED_PER_CYCLE * _LATENCY) / _FUSED_PER_CYCLE


def _places(layer: Layer, tiling: Tiling) -> tuple[int, int]:
    """Returns the tiles of a block, and the rows of tiles of an image."""
    outputs = tiling.transform.outputs
    return tiling.rows * -(-layer.width // outputs), -(-layer.height // outputs)


# Rewrites a function: the convolution becomes loops that transform the image, sum up products,
# transform the sums back, and write them where the convolution wrote.


class _Tiles:
    """Rewrites the function with the convolution in tiles. A tile's place is its number in its
    block; the last register tile of a block may have places beyond its tiles.

    All buffers are float32. With m x m outputs and p = (m + 2)^2 points of a tile:
    `_weights`: (channels out // lanes, p, channels in, lanes), made once at build time;
    `_inputs`: (batch, blocks, p, padded places, channels in), the transformed image;
    `_sums`: (batch, blocks, p, padded places, channels out), the products summed up;
    `_outputs`: (batch, blocks, places, m^2, channels out), the sums transformed back."""

    def __init__(self, main: Any, convolution: Convolution, tiling: Tiling) -> None:
        self._main, self._original, self._tiling = main, convolution, tiling
        self._transform, self._layer = tiling.transform, _layer(convolution)
        self._places, self._rows = _places(self._layer, tiling)
        self._across = self._places // tiling.rows
        batch, _, _, channels_out, channels_in = self._layer
        points, columns = self._transform.points**2, tiling.columns
        self._blocks = batch, -(-self._rows // tiling.rows)
        self._padded_places = -(-self._places // columns) * columns
        self._weights = self._buffer(
            "packed", channels_out // tiling.lanes, points, channels_in, tiling.lanes
        )
        inside = (*self._blocks, points, self._padded_places)
        self._inputs = self._buffer(_INPUTS, *inside, channels_in)
        self._sums = self._buffer(_PRODUCTS, *inside, channels_out)
        self._outputs = self._buffer(
            _OUTPUTS, *self._blocks, self._places, self._transform.outputs**2, channels_out
        )

    def function(self) -> Any:
        """Returns the function with five or six loop nests in the place of the convolution's, and
        the transform of the weights before all others."""
        convolution, root = self._original, self._main.body.block
        image, copies = self._whole_image()
        nests = [self._weights_transform(), *convolution.nests]
        nests[convolution.place + 1 : convolution.place + 2] = [
            *copies,
            self._image_transform(image),
            self._products(),
            self._sums_transform(),
            self._untile_output(),
        ]
        buffers_of_stages = (self._weights, self._inputs, self._sums, self._outputs)
        buffers = [*root.alloc_buffers, *buffers_of_stages, *([image] if copies else [])]
        constant = place_of_constant(self._main, convolution.weights)
        rest = [n for n in self._main.attrs[CONSTANTS] if int(n) != constant]
        body = tirx.SeqStmt(nests)
        whole = SBlock([], root.reads, root.writes, root.name_hint, body, None, buffers)
        return self._main.with_attr(CONSTANTS, rest).with_body(SBlockRealize([], True, whole))

    def _weights_transform(self) -> Any:
        """Returns the nest that makes `_weights`, transformed along one axis, then the other."""
        convolution, transform = self._original, self._transform
        extents = (self._layer.channels_in, self._layer.channels_out)
        channel_in, channel_out = axes = self._variables(2)
        lanes, window = self._number(self._tiling.lanes), range(_WINDOW)
        first, lane = tirx.floordiv(channel_out, lanes), tirx.floormod(channel_out, lanes)
        last = [channel_in, lane]

        def weight(y: int, x: int) -> Any:
            return BufferLoad(convolution.weights, [self._number(y), self._number(x), *axes])

        columns = [
            [_weighted_sum(factors, [weight(y, x) for y in window]) for x in window]
            for factors in transform.weights
        ]
        values = [_weighted_sum(each, column) for column in columns for each in transform.weights]
        block = SBlock(
            self._axes(axes, extents),
            [self._region(convolution.weights, [(0, _WINDOW), (0, _WINDOW), *axes])],
            [self._region(self._weights, [first, (0, transform.points**2), *last])],
            "winograd_weights",
            tirx.SeqStmt(
                [
                    BufferStore(self._weights, value, [first, self._number(n), *last])
                    for n, value in enumerate(values)
                ]
            ),
            annotations=convolutions.PACKING,
        )
        return self._nest(block, extents)

    def _whole_image(self) -> tuple[Any, list[Any]]:
        """Returns an image that has all numbers that tiles read, and the loops that make it."""
        image, outputs = self._original.image_buffer, self._transform.outputs
        batch, height, width, channels = (int(n) for n in image.shape)
        shape = (
            batch,
            max(height, self._rows * outputs + _WINDOW - 1),
            max(width, self._across * outputs + _WINDOW - 1),
            channels,
        )
        if shape == (batch, height, width, channels):
            return image, []
        whole, axes = self._buffer(_IMAGE, *shape), self._variables(4)
        inside = tirx.all(axes[1] < self._number(height), axes[2] < self._number(width))
        zero = tirx.const(0.0, "float32")
        block = SBlock(
            self._axes(axes, shape),
            [self._region(image, axes)],
            [self._region(whole, axes)],
            _IMAGE,
            BufferStore(whole, tirx.if_then_else(inside, BufferLoad(image, axes), zero), axes),
        )
        return whole, [self._nest(block, shape)]

    def _image_transform(self, image: Any) -> Any:
        """Returns the nest that makes `_inputs`, for a vector of channels at a time."""
        points, outputs = self._transform.points, self._transform.outputs
        lanes = math.gcd(self._layer.channels_in, REGISTER)
        extents = (*self._blocks, 1, self._padded_places, self._layer.channels_in // lanes)
        batch, block, every, place, step = axes = self._variables(5)
        channel = step * self._number(lanes)
        # Places beyond the last tile repeat it: their numbers are finite, and nobody reads them.
        tile = tirx.min(place, self._number(self._places - 1))
        row = block * self._number(self._tiling.rows) + tirx.floordiv(
            tile, self._number(self._across)
        )
        first_row = tirx.min(row, self._number(self._rows - 1)) * self._number(outputs)
        first_column = tirx.floormod(tile, self._number(self._across)) * self._number(outputs)

        def pixel(y: int, x: int) -> Any:
            indices = [batch, first_row + self._number(y), first_column + self._number(x), channel]
            return image.vload(indices, dtype_of(lanes))

        def store(n: int, value: Any) -> Any:
            return self._inputs.vstore([batch, block, self._number(n), place, channel], value)

        body, buffers = self._both_axes(self._transform.image, pixel, store, lanes)
        window = [batch, (first_row, points), (first_column, points), (channel, lanes)]
        region = [batch, block, self._all(every, points), place, (channel, lanes)]
        block_ = SBlock(
            self._axes(axes, extents),
            [self._region(image, window)],
            [self._region(self._inputs, region)],
            _INPUTS,
            body,
            None,
            buffers,
        )
        return self._nest(block_, extents)

    def _products(self) -> Any:
        """Returns the nest that makes `_sums`: at each point a matrix product."""
        layer, lanes = self._layer, self._number(self._tiling.lanes)
        points = self._transform.points**2
        extents = (
            *self._blocks,
            points,
            self._padded_places,
            layer.channels_out,
            layer.channels_in,
        )
        *output, inner = axes = self._variables(6)
        batch, block, point, place, channel = output
        read = [batch, block, point, place, inner]
        weight = [tirx.floordiv(channel, lanes), point, inner, tirx.floormod(channel, lanes)]
        product = BufferLoad(self._inputs, read) * BufferLoad(self._weights, weight)
        whole = SBlock(
            self._axes(axes, extents, sums=1),
            [self._region(self._inputs, read), self._region(self._weights, weight)],
            [self._region(self._sums, output)],
            _PRODUCTS,
            BufferStore(self._sums, BufferLoad(self._sums, output) + product, output),
            BufferStore(self._sums, tirx.const(0.0, "float32"), output),
        )
        return self._nest(whole, extents)

    def _sums_transform(self) -> Any:
        """Returns the nest that makes `_outputs`, for a vector of channels at a time."""
        points, outputs = self._transform.points, self._transform.outputs
        lanes = math.gcd(self._layer.channels_out, REGISTER)
        extents = (*self._blocks, self._places, 1, self._layer.channels_out // lanes)
        batch, block, place, every, step = axes = self._variables(5)
        channel = step * self._number(lanes)

        def sum_(y: int, x: int) -> Any:
            indices = [batch, block, self._number(y * points + x), place, channel]
            return self._sums.vload(indices, dtype_of(lanes))

        def store(n: int, value: Any) -> Any:
            return self._outputs.vstore([batch, block, place, self._number(n), channel], value)

        body, buffers = self._both_axes(self._transform.sums, sum_, store, lanes)
        read = [batch, block, self._all(every, points), place, (channel, lanes)]
        region = [batch, block, place, self._all(every, outputs), (channel, lanes)]
        whole = SBlock(
            self._axes(axes, extents),
            [self._region(self._sums, read)],
            [self._region(self._outputs, region)],
            _OUTPUTS,
            body,
            None,
            buffers,
        )
        return self._nest(whole, extents)

    def _both_axes(
        self,
        along: Callable[[Sequence[Any]], list[Any]],
        load: Callable[[int, int], Any],
        store: Callable[[int, Any], Any],
        lanes: int,
    ) -> tuple[Any, list[Any]]:
        """Returns the statements that transform a tile along both axes, and the columns that are
        made on the way: small ones, which stay in registers."""
        points = range(self._transform.points)
        rows = [along([load(y, x) for y in points]) for x in points]
        height = range(len(rows[0]))
        columns = [
            tirx.decl_buffer([self._number(len(height) * lanes)], "float32", f"column{x}")
            for x in points
        ]
        first = [
            columns[x].vstore([self._number(y * lanes)], rows[x][y]) for x in points for y in height
        ]
        values = []
        for y in height:
            row = [columns[x].vload([self._number(y * lanes)], dtype_of(lanes)) for x in points]
            values += along(row)
        return tirx.SeqStmt([*first, *(store(n, each) for n, each in enumerate(values))]), columns

    def _untile_output(self) -> Any:
        """Writes what the convolution wrote."""
        convolution, outputs = self._original, self._number(self._transform.outputs)
        batch, y, x, channel = axes = self._variables(4)
        rows, across = self._number(self._tiling.rows), self._number(self._across)
        row_in_block = tirx.floormod(tirx.floordiv(y, outputs), rows)
        read = [
            batch,
            tirx.floordiv(y, outputs * rows),
            row_in_block * across + tirx.floordiv(x, outputs),
            tirx.floormod(y, outputs) * outputs + tirx.floormod(x, outputs),
            channel,
        ]
        block = SBlock(
            self._axes(axes, convolution.extents),
            [self._region(self._outputs, read)],
            [self._region(convolution.output, axes)],
            _UNTILED,
            BufferStore(convolution.output, BufferLoad(self._outputs, read), axes),
        )
        return self._nest(block, convolution.extents)

    def _all(self, every: Any, side: int) -> tuple[Any, int]:
        """Returns the range of all numbers of a tile. It begins at a variable, `every`, that is
        always 0: the compiler moves no block that writes from a constant on."""
        return every * self._number(side**2), side**2

    def _variables(self, count: int) -> list[Any]:
        return [Var(f"v_{n}", self._original.loop_type) for n in range(count)]

    def _axes(self, variables: Sequence[Any], extents: Sequence[int], sums: int = 0) -> list[Any]:
        kinds = [IterVar.DataPar] * (len(variables) - sums) + [IterVar.CommReduce] * sums
        return [
            IterVar(tvm.ir.Range(self._number(0), self._number(extent)), variable, kind)
            for variable, extent, kind in zip(variables, extents, kinds, strict=True)
        ]

    def _region(self, buffer: Any, indices: Sequence[Any]) -> Any:
        """Returns the region at these indices; a pair is a start and an extent."""
        ranges = []
        for index in indices:
            start, extent = index if isinstance(index, tuple) else (index, 1)
            first = self._number(start) if isinstance(start, int) else start
            ranges.append(tvm.ir.Range.from_min_extent(first, self._number(extent)))
        return BufferRegion(buffer, ranges)

    def _buffer(self, name: str, *shape: int) -> Any:
        return tirx.decl_buffer([self._number(n) for n in shape], "float32", name)

    def _number(self, value: int) -> Any:
        return tirx.const(value, self._original.loop_type)

    def _nest(self, block: Any, extents: Sequence[int]) -> Any:
        return convolutions.loops_around(block, extents, self._original.loop_type)


def _weighted_sum(factors: Sequence[float], numbers: Sequence[Any]) -> Any:
    terms = [_times(f, n) for f, n in zip(factors, numbers, strict=True) if f]
    return sum(terms[1:], start=terms[0])


# Schedules a rewritten function: a block of tiles is transformed at once; then a few output
# channels at a time are summed up, transformed back and written, with what follows.


def _schedule(main: Any, tiling: Tiling, target: Any) -> Any:
    registers, threads = vector_registers(target), threads_of(target)
    schedule = Schedule(tvm.IRModule({_MAIN: main.with_attr(_SYMBOL, _MAIN)}))
    inputs, products, outputs, output = (
        schedule.get_sblock(name) for name in (_INPUTS, _PRODUCTS, _OUTPUTS, _UNTILED)
    )
    _copy_image(schedule, inputs, registers, threads)
    unscheduled.inline_followers(schedule, output)
    batch, y, x, channels = schedule.get_loops(output)
    blocks, rows = schedule.split(y, [None, tiling.transform.outputs * tiling.rows])
    groups, few = schedule.split(channels, [None, tiling.lanes])
    schedule.reorder(batch, blocks, groups, rows, x, few)
    # Rows stay a loop: what follows, such as SiLU, is in the code once for each vector.
    schedule.vectorize(schedule.split(few, [None, registers.lanes])[1])
    schedule.compute_at(outputs, groups)
    schedule.compute_at(products, groups)
    schedule.compute_at(inputs, blocks)
    if threads > 1:
        schedule.parallel(schedule.fuse(batch, blocks))
    _tile_products(schedule, products, tiling, registers)
    return schedule.mod[_MAIN]


def _copy_image(schedule: Any, inputs: Any, registers: VectorRegisters, threads: int) -> None:
    """Pads the image in one copy."""
    for image in schedule.get_producers(inputs):
        for padding in schedule.get_producers(image):
            schedule.compute_inline(padding)
        inner = schedule.get_loops(image)[-1]
        lanes = math.gcd(int(schedule.get(inner).extent), registers.lanes)
        schedule.vectorize(schedule.split(inner, [None, lanes])[1])
        unscheduled.share_out(schedule, image, threads)


def _tile_products(
    schedule: Any, products: Any, tiling: Tiling, registers: VectorRegisters
) -> None:
    _, place, channel, inner = schedule.get_loops(products)[-4:]
    tiles, columns = schedule.split(place, [None, tiling.columns])
    copy = schedule.cache_write(products, 0, "global")
    schedule.reorder(tiles, inner, columns, channel)
    schedule.reverse_compute_at(copy, tiles)
    schedule.unroll(columns)
    *_, written_columns, written_channel = schedule.get_loops(copy)
    schedule.unroll(written_columns)
    for lanes in (channel, written_channel):
        vectors, each = schedule.split(lanes, [None, registers.lanes])
        schedule.unroll(vectors)
        schedule.vectorize(each)
    schedule.decompose_reduction(products, inner)
