"""The kernel of a product of narrow numbers, with 32-bit sums.

The image is rounded once. Then a block of sums stays in the processor while a tap is added up, by
tiles or by vectors. The sums go to 4 KB of stack, where the stages that follow (bias, ReLU) read
them: what the model fuses stays fused.
"""

from collections.abc import Sequence
from typing import Any, Final

from tvm import tirx
from tvm.script.ir_builder import IRBuilder
from tvm.tirx.script.builder import ir as T

from tunegate.compiler.low_precision import tile_numbers
from tunegate.compiler.low_precision import tiles as amx
from tunegate.compiler.low_precision.expressions import (
    int64_constant,
    loop,
    rewritten,
    whole_buffer,
)
from tunegate.compiler.low_precision.operands import TileOperands, operands_of
from tunegate.compiler.low_precision.product import COLUMNS, Product, RowsOfTiles, Stage
from tunegate.compiler.low_precision.tile_numbers import BFLOAT16, TileNumbers, column_words
from tunegate.compiler.low_precision.tiles import TileProducts
from tunegate.compiler.low_precision.vector_products import BlockProducts, SumBlock, VectorProducts
from tunegate.compiler.schedules.unscheduled import IS_SCHEDULED
from tunegate.errors import UnsupportedModelError

_FLOAT = "float32"
_CACHED_BYTES = 512 * 1024
"""The rows that are multiplied by all columns in turn: they stay in the L2 cache."""


def tile_kernel(
    product: Product, function: Any, threads: int, numbers: TileNumbers = BFLOAT16
) -> Any:
    """Returns the function's kernel in these numbers. Its image and result are float32 in the
    function's own shapes, its weights (n,) as `tile_numbers.pack_weights` makes them. Raises
    UnsupportedModelError for unknown stages, and for sums that could overflow."""
    if any(str(stage.buffer.dtype) != _FLOAT for stage in product.stages):
        message = "a stage makes no float32"
        raise UnsupportedModelError(message)
    if product.shape.products > numbers.most_products:
        message = "a sum has more products than 32 bits hold"
        raise UnsupportedModelError(message)
    return _Kernel(product, function, threads, numbers).build()


class _Kernel:
    def __init__(self, product: Product, function: Any, threads: int, numbers: TileNumbers) -> None:
        self._product, self._function, self._threads = product, function, threads
        self._numbers = numbers
        self._rows = RowsOfTiles(product.shape, numbers.depth)
        self._operands = operands_of(self._rows, numbers)
        kind = TileProducts if numbers.is_tiled else VectorProducts
        self._products: BlockProducts = kind(self._rows, numbers)
        self._columns = product.shape.out_channels
        self._high = self._products.rows
        self._blocks = -(-self._rows.row_count // self._high)

    def build(self) -> Any:
        function = self._function
        with IRBuilder() as builder, T.prim_func(is_private=True, s_tir=True):
            T.func_name("main")
            T.func_attr({"tirx.noalias": True, IS_SCHEDULED: True})
            for place, buffer in enumerate(function.params):
                is_packed = place == self._product.weights and self._product.right is None
                words = tile_numbers.packed_words(self._rows, self._numbers)
                parameter = T.buffer((words,), self._numbers.word) if is_packed else buffer
                argument = T.arg(f"p{place}", parameter)
                if is_packed:
                    self._weights = argument
            self._body()
        return builder.get()

    @property
    def _column_size(self) -> int:
        """The weights of a tile of columns, in words."""
        return column_words(self._rows, self._numbers)

    def _body(self) -> None:
        packing = "" if self._product.right is None else PAIR
        functions = self._products.functions + self._operands.functions + packing
        with T.attr(0, amx.IMPORTED, functions):
            self._products.require()
            if self._product.right is not None:
                self._weights = packed_rows(self._product, self._rows, self._threads)
            self._operands.prepare(self._product, self._weights, self._threads)
            rows = self._blocks * self._high
            self._narrow = TileRows(self._product, rows, self._operands, self._threads)
            self._narrow.fill()
            self._multiply()

    def _multiply(self) -> None:
        """Loops over groups of rows outside and columns inside: few rows stay in the cache, and all
        weights stream past. With few rows the threads share the columns."""
        step_bytes = self._numbers.each_bytes * self._high * self._rows.step
        at_once = max(1, min(self._blocks, _CACHED_BYTES // step_bytes))
        if self._threads > 1:
            at_once = max(1, min(at_once, self._blocks // (2 * self._threads)))
        groups = -(-self._blocks // at_once) * self._product.shape.images
        columns = -(-self._columns // self._line)
        is_divided = self._threads > 1 and groups < self._threads
        outer = groups * columns if is_divided else groups
        with loop(outer, self._threads) as part:
            self._products.begin()
            stage_size = COLUMNS * len(self._product.stages)
            self._sum_buffer = whole_buffer(self._high * self._line + stage_size, _FLOAT)
            group = part // columns if is_divided else part
            if is_divided:
                self._column(group, part % columns, at_once)
            else:
                with T.serial(int64_constant(columns)) as column:
                    self._column(group, column, at_once)
            self._products.end()

    def _column(self, group: Any, column: Any, at_once: int) -> None:
        """Multiplies all rows of a group by one column of blocks."""
        groups = -(-self._blocks // at_once)
        image, first = group // groups, group % groups * at_once
        with T.serial(int64_constant(at_once)) as inner:
            block = first + inner
            if self._blocks % at_once:
                with T.If(block < self._blocks), T.Then():
                    self._tiles(image, block, column)
            else:
                self._tiles(image, block, column)

    def _tiles(self, image: Any, block: Any, column: Any) -> None:
        """Multiplies one block of rows; the last column of blocks may be narrower."""
        full, rest = divmod(self._columns, self._line)
        whole = [COLUMNS] * self._products.tiles
        rest_columns = [min(COLUMNS, rest - at) for at in range(0, rest, COLUMNS)]
        if not rest or not full:
            self._sums(image, block, column, rest_columns or whole)
            return
        with T.If(column < full):
            with T.Then():
                self._sums(image, block, column, whole)
            with T.Else():
                self._sums(image, block, column, rest_columns)

    def _sums(self, image: Any, block: Any, column: Any, lanes: Sequence[int]) -> None:
        """Emits one block of sums over all taps, and then its stages."""
        base = image * self._rows.image + block * (self._high * self._rows.step)
        weights = column * (self._products.tiles * self._column_size)
        if self._product.right is not None:
            weights += image * (-(-self._columns // COLUMNS) * self._column_size)
        self._products.add_up(
            SumBlock(
                left=self._narrow.at,
                base=base,
                weights=lambda place: T.address_of(self._weights[place]),
                first=weights,
                sums=lambda row, tile: T.address_of(self._sum(int64_constant(row), tile, 0)),
                tiles=len(lanes),
            )
        )
        self._results(image, block * self._high, column, lanes)

    @property
    def _line(self) -> int:
        """The distance of two rows of sums."""
        return self._products.tiles * COLUMNS

    def _sum(self, row: Any, tile: int, lane: Any) -> Any:
        return self._sum_buffer[row * self._line + (tile * COLUMNS + lane)]

    def _results(self, image: Any, first: Any, column: Any, lanes: Sequence[int]) -> None:
        rows, shape = self._rows, self._product.shape
        with T.serial(int64_constant(min(self._high, rows.row_count))) as inner:
            row = first + inner

            def store_columns() -> None:
                places = self._places(image, row)
                for tile, count in enumerate(lanes):
                    self._store_row(places, column, tile, inner, count)

            conditions = []
            if rows.row_count % self._high:
                conditions.append(row < rows.row_count)
            if rows.pitch > shape.result.width:
                conditions.append(row % rows.pitch < shape.result.width)
            if conditions:
                with T.If(tirx.all(*conditions)), T.Then():
                    store_columns()
            else:
                store_columns()

    def _store_row(
        self, places: Sequence[Any], column: Any, tile: int, row: Any, count: int
    ) -> None:
        """Emits one row of a tile, element by element through all stages."""
        with T.vectorized(int64_constant(count)) as lane:
            at = column * self._line + (tile * COLUMNS + lane)
            total = self._sum(row, tile, lane)
            values_of = {self._product.sums: self._operands.value(total, at)}
            for number, stage in enumerate(self._product.stages[:-1]):
                # A named value would be inlined at each use.
                place = self._high * self._line + (number * COLUMNS + lane)
                value = self._value(stage, [*places, at], values_of)
                T.buffer_store(self._sum_buffer, value, [place])
                values_of[stage.buffer] = self._sum_buffer[place]
            last = self._product.stages[-1:]
            value = (
                self._value(last[0], [*places, at], values_of) if last else values_of.popitem()[1]
            )
            T.buffer_store(self._product.result, value, [*places, at])

    def _places(self, image: Any, row: Any) -> list[Any]:
        """Returns the indices of a row of the result."""
        if not self._product.is_convolution:
            return self._product.row_at(image, row)
        return [image, row // self._rows.pitch, row % self._rows.pitch]

    def _value(self, stage: Stage, indices: Sequence[Any], loaded_values: dict[Any, Any]) -> Any:
        variables = dict(zip(stage.variables, indices, strict=True))

        def load(buffer: Any, places: list[Any]) -> Any:
            return loaded_values[buffer] if buffer in loaded_values else buffer[tuple(places)]

        return rewritten(stage.value, variables, load)


# The image of a product in narrow numbers, as tiles read it: the kernel's first step.


class TileRows:
    """Emits a buffer of `row_count` rows, in whole tiles, and fills it."""

    def __init__(
        self, product: Product, row_count: int, operands: TileOperands, threads: int
    ) -> None:
        self._product, self._operands, self._threads = product, operands, threads
        self._rows = RowsOfTiles(product.shape, operands.numbers.depth)
        images = product.shape.images - 1
        size = self._rows.size(row_count) + images * self._rows.image
        self._buffer = whole_buffer(size, operands.numbers.narrow)

    def at(self, place: Any) -> Any:
        """Returns the address of an element."""
        return T.address_of(self._buffer[place])

    def fill(self) -> None:
        """Emits the rounding of the image; the border and the tail of the last tile stand for 0."""
        rows, shape = self._rows, self._product.shape
        for phase, remainder in enumerate(rows.phases):
            with loop(shape.images * rows.phase_height, self._threads) as at:
                image, line = at // rows.phase_height, at % rows.phase_height
                y = line * shape.stride.height + remainder - shape.padding.height
                to = image * rows.image + (phase * rows.phase_height + line) * rows.line
                self._line(image, y, to, remainder)
        self._zeros(int64_constant(shape.images * rows.image), rows.depth)

    def _line(self, image: Any, y: Any, to: Any, remainder: int) -> None:
        """Emits a row of the padded image, which may belong to the border."""
        rows, shape = self._rows, self._product.shape
        last = (rows.phase_height - 1) * shape.stride.height + remainder - shape.padding.height
        if remainder >= shape.padding.height and last < shape.source.height:
            self._pixels(image, y, to)
            return
        with T.If(tirx.all(y >= 0, y < shape.source.height)):
            with T.Then():
                self._pixels(image, y, to)
            with T.Else():
                self._zeros(to, rows.line)

    def _pixels(self, image: Any, y: Any, to: Any) -> None:
        rows, shape = self._rows, self._product.shape
        left = shape.padding.width
        width = rows.line // rows.pixel - left
        pixels = min(shape.source.width, width)
        if left:
            self._zeros(to, left * rows.pixel)
        to = to + left * rows.pixel
        if rows.pixel == shape.channels:
            source = self._source(image, y, int64_constant(0))
            self._operands.round_numbers(
                source, self.at(to), pixels * rows.pixel, width * rows.pixel
            )
            return
        with T.serial(int64_constant(pixels)) as x:
            source = self._source(image, y, x)
            self._operands.round_numbers(
                source, self.at(to + x * rows.pixel), shape.channels, rows.pixel
            )
        if width > pixels:
            self._zeros(to + pixels * rows.pixel, (width - pixels) * rows.pixel)

    def _source(self, image: Any, y: Any, x: Any) -> Any:
        """Returns the address of a pixel."""
        places = [image, y, x] if self._product.is_convolution else self._product.row_at(image, y)
        return T.address_of(self._product.source[(*places, 0)])

    def _zeros(self, to: Any, count: int) -> None:
        self._operands.round_numbers(self.at(to), self.at(to), 0, count)


# The right operand of a product of two activations, packed by the kernel itself. Weights are packed
# at build time; what each inference computes is first rounded to bfloat16 in the layout that tiles
# read: pairs of rows side by side.

_PAIR: Final = "tunegate_pair_bfloat16"
_LANES: Final = ", ".join(f"i32 {n}" for n in range(COLUMNS))
_IN_TURN: Final = ", ".join(f"i32 {n}, i32 {n + COLUMNS}" for n in range(COLUMNS))
_FLOATS: Final = f"<{COLUMNS} x float>"
PAIR: Final = f"""
define void @{_PAIR}(ptr %even, ptr %odd, ptr %to, i32 %evens, i32 %odds) {{
  %one_even = insertelement <16 x i32> poison, i32 %evens, i32 0
  %all_even = shufflevector <16 x i32> %one_even, <16 x i32> poison, <16 x i32> zeroinitializer
  %is_even = icmp slt <16 x i32> <{_LANES}>, %all_even
  %one_odd = insertelement <16 x i32> poison, i32 %odds, i32 0
  %all_odd = shufflevector <16 x i32> %one_odd, <16 x i32> poison, <16 x i32> zeroinitializer
  %is_odd = icmp slt <16 x i32> <{_LANES}>, %all_odd
  %low = call {_FLOATS} @llvm.masked.load.v16f32.p0(
    ptr %even, i32 4, <16 x i1> %is_even, {_FLOATS} zeroinitializer)
  %high = call {_FLOATS} @llvm.masked.load.v16f32.p0(
    ptr %odd, i32 4, <16 x i1> %is_odd, {_FLOATS} zeroinitializer)
  %rounded = call <32 x bfloat> @llvm.x86.avx512bf16.cvtne2ps2bf16.512(
    {_FLOATS} %high, {_FLOATS} %low)
  %bits = bitcast <32 x bfloat> %rounded to <32 x i16>
  %pairs = shufflevector <32 x i16> %bits, <32 x i16> poison, <32 x i32> <{_IN_TURN}>
  store <32 x i16> %pairs, ptr %to, align 2
  ret void
}}
"""
"""`pair(even, odd, to, evens, odds)` rounds two rows of `evens` and `odds` numbers and interleaves
them, filling up with zeros. It comes with `tiles.ROUND`, which declares the functions
it calls."""


def packed_rows(product: Product, rows: RowsOfTiles, threads: int) -> Any:
    """Emits the packing and returns the buffer: for each image, the layout of
    `tile_numbers.pack_weights`."""
    pairs, tiles = rows.tap_depth // 2, -(-rows.shape.out_channels // COLUMNS)
    size = tiles * pairs * 2 * COLUMNS
    buffer = whole_buffer(rows.shape.images * size, BFLOAT16.word)
    whole, rest = divmod(rows.shape.out_channels, COLUMNS)
    with loop(rows.shape.images, threads) as image:

        def line(pair: Any, present: int) -> None:
            """Emits a pair of rows, of which `present` exist."""
            with T.serial(int64_constant(whole)) as tile:
                column(pair, tile, COLUMNS, present)
            if rest:
                column(pair, int64_constant(whole), rest, present)

        def column(pair: Any, tile: Any, count: int, present: int) -> None:
            row = 2 * pair if present else int64_constant(0)
            ends = [
                T.address_of(product.right[(*product.image_at(image), at, tile * COLUMNS)])
                for at in (row, row + 1 if present > 1 else row)
            ]
            to = T.address_of(buffer[image * size + (tile * pairs + pair) * (2 * COLUMNS)])
            counts = [tirx.const(count * (present > n), "int32") for n in range(2)]
            T.evaluate(tirx.call_extern("void", _PAIR, *ends, to, *counts))

        # Whole pairs of rows, a last row alone, and pairs of zeros that fill up a tile.
        both, one = divmod(rows.shape.channels, 2)
        with T.serial(int64_constant(both)) as pair:
            line(pair, 2)
        if one:
            line(int64_constant(both), 1)
        if pairs > both + one:
            with T.serial(int64_constant(pairs - both - one)) as pair:
                line(pair + (both + one), 0)
    return buffer
