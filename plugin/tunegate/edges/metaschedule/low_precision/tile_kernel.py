"""The kernel of a product by tiles of narrow numbers, with sums of 32 bits.

The image is rounded once, then two by two tiles of sums stay in the processor while all taps are
added up. They go to 4 KB of the stack, from where the stages that follow, as bias and ReLU, read
them: what the model fuses stays fused.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from tvm import tirx
from tvm.script.ir_builder import IRBuilder
from tvm.tirx.script.builder import ir as T

from tunegate.edges.metaschedule.low_precision import tile_instructions as amx
from tunegate.edges.metaschedule.low_precision.expressions import rewritten
from tunegate.edges.metaschedule.low_precision.loops import long, loop, whole_buffer
from tunegate.edges.metaschedule.low_precision.operands import operands_of
from tunegate.edges.metaschedule.low_precision.packed_weights import packed_words
from tunegate.edges.metaschedule.low_precision.paired_rows import PAIR, packed_rows
from tunegate.edges.metaschedule.low_precision.product import Product, Stage
from tunegate.edges.metaschedule.low_precision.product_shape import (
    COLUMNS,
    ROWS,
    RowsOfTiles,
)
from tunegate.edges.metaschedule.low_precision.tile_numbers import BFLOAT16, TileNumbers
from tunegate.edges.metaschedule.low_precision.tile_rows import TileRows
from tunegate.edges.metaschedule.passes.unscheduled import IS_SCHEDULED
from tunegate.errors import UnsupportedModelError

_FLOAT = "float32"
_LEFT, _RIGHT = 4, 6
"""The first tiles of the operands, behind four of sums."""
_CACHED_BYTES = 512 * 1024
"""The rows that are multiplied by all columns in turn: they stay in the second cache."""


class TileBlock(NamedTuple):
    """The tiles of sums that are computed at once."""

    high: int
    wide: int


def tile_kernel(
    product: Product, function: Any, threads: int, numbers: TileNumbers = BFLOAT16
) -> Any:
    """Returns the kernel of the function in these numbers: its weights are those of
    `packed_weights.packed`. Raises UnsupportedModelError for stages that are not known here, and
    for sums that could overflow."""
    if any(str(stage.buffer.dtype) != _FLOAT for stage in product.stages):
        message = "a stage makes no float32"
        raise UnsupportedModelError(message)
    if product.shape.products > numbers.most_products:
        message = "a sum has more products than 32 bits hold"
        raise UnsupportedModelError(message)
    return _Kernel(product, function, threads, numbers).made()


class _Kernel:
    def __init__(self, product: Product, function: Any, threads: int, numbers: TileNumbers) -> None:
        self._product, self._function, self._threads = product, function, threads
        self._numbers = numbers
        self._rows = RowsOfTiles(product.shape, numbers.depth)
        self._operands = operands_of(self._rows, numbers)
        few = self._rows.row_count <= ROWS
        self._block = TileBlock(1, 2) if few else TileBlock(2, 2)
        self._columns = product.shape.out_channels
        self._high = self._block.high * ROWS
        self._blocks = -(-self._rows.row_count // self._high)

    def made(self) -> Any:
        function = self._function
        with IRBuilder() as builder, T.prim_func(is_private=True, s_tir=True):
            T.func_name("main")
            T.func_attr({"tirx.noalias": True, IS_SCHEDULED: True})
            for place, buffer in enumerate(function.params):
                packed = place == self._product.weights and self._product.right is None
                given = self._packed_buffer() if packed else buffer
                argument = T.arg(f"p{place}", given)
                if packed:
                    self._weights = argument
            self._body()
        return builder.get()

    @property
    def _functions(self) -> str:
        return self._operands.functions + ("" if self._product.right is None else PAIR)

    def _packed_buffer(self) -> Any:
        return T.buffer((packed_words(self._rows, self._numbers),), self._numbers.word)

    @property
    def _column_size(self) -> int:
        """The weights of a column of tiles, in words."""
        return self._words(len(self._rows.taps) * self._rows.tap_depth)

    def _words(self, depth: int) -> int:
        """Those of a column of tiles of so much depth."""
        return depth * COLUMNS // self._numbers.in_a_word

    def _body(self) -> None:
        with T.attr(0, amx.IMPORTED, self._functions):
            amx.require_permission()
            if self._product.right is not None:
                self._weights = packed_rows(self._product, self._rows, self._threads)
            self._operands.prepare(self._product, self._weights, self._threads)
            rows = self._blocks * self._high
            self._narrow = TileRows(self._product, rows, self._operands, self._threads)
            self._narrow.fill()
            self._multiply()

    def _multiply(self) -> None:
        """Rows outside, columns inside: few rows stay near, and all weights pass by. Few rows are
        divided among threads by columns."""
        step_bytes = self._numbers.each_bytes * self._high * self._rows.step
        at_once = max(1, min(self._blocks, _CACHED_BYTES // step_bytes))
        if self._threads > 1:
            at_once = max(1, min(at_once, self._blocks // (2 * self._threads)))
        groups = -(-self._blocks // at_once) * self._product.shape.images
        columns = -(-self._columns // self._line)
        is_divided = self._threads > 1 and groups < self._threads
        outer = groups * columns if is_divided else groups
        with loop(outer, self._threads) as part:
            amx.begin_tiles(min(ROWS, self._rows.row_count))
            kept = COLUMNS * len(self._product.stages)
            self._sum_buffer = whole_buffer(self._high * self._line + kept, _FLOAT)
            group = part // columns if is_divided else part
            if is_divided:
                self._column(group, part % columns, at_once)
            else:
                with T.serial(long(columns)) as column:
                    self._column(group, column, at_once)
            amx.end_tiles()

    def _column(self, group: Any, column: Any, at_once: int) -> None:
        """All rows of a group by one column of blocks."""
        groups = -(-self._blocks // at_once)
        image, first = group // groups, group % groups * at_once
        with T.serial(long(at_once)) as inner:
            block = first + inner
            if self._blocks % at_once:
                with T.If(block < self._blocks), T.Then():
                    self._tiles(image, block, column)
            else:
                self._tiles(image, block, column)

    def _tiles(self, image: Any, block: Any, column: Any) -> None:
        """The last column of blocks may be a narrower one."""
        full, rest = divmod(self._columns, self._line)
        whole = [COLUMNS] * self._block.wide
        left = [min(COLUMNS, rest - at) for at in range(0, rest, COLUMNS)]
        if not rest or not full:
            self._sums(image, block, column, left or whole)
            return
        with T.If(column < full):
            with T.Then():
                self._sums(image, block, column, whole)
            with T.Else():
                self._sums(image, block, column, left)

    def _sums(self, image: Any, block: Any, column: Any, lanes: Sequence[int]) -> None:
        """One block of tiles, through all taps, and then through the stages."""
        high, wide = self._block.high, len(lanes)
        rows = self._rows
        for tile in range(high * wide):
            amx.clear(tile)
        base = image * rows.image + block * (self._high * rows.step)
        weights = column * (self._block.wide * self._column_size)
        if self._product.right is not None:
            weights += image * (-(-self._columns // COLUMNS) * self._column_size)
        for tap, moved in enumerate(rows.taps):
            with T.serial(long(rows.tap_depth // rows.depth)) as depth:
                for tile in range(high):
                    place = base + (moved + tile * ROWS * rows.step) + depth * rows.depth
                    line = self._numbers.each_bytes * rows.step
                    amx.load_tile(_LEFT + tile, self._narrow.at(place), line)
                for tile in range(wide):
                    place = weights + (tile * self._column_size + self._words(tap * rows.tap_depth))
                    address = T.address_of(self._weights[place + depth * self._words(rows.depth)])
                    amx.load_tile(_RIGHT + tile, address, amx.BYTES)
                for tile in range(high * wide):
                    left, right = _LEFT + tile // wide, _RIGHT + tile % wide
                    amx.add_products(self._operands.multiply, tile, left, right)
        for tile in range(high * wide):
            address = T.address_of(self._sum(long(tile // wide * ROWS), tile % wide, 0))
            amx.store_tile(tile, address, 4 * self._line)
        self._results(image, block * self._high, column, lanes)

    @property
    def _line(self) -> int:
        """The distance of two rows of sums."""
        return self._block.wide * COLUMNS

    def _sum(self, row: Any, tile: int, lane: Any) -> Any:
        return self._sum_buffer[row * self._line + (tile * COLUMNS + lane)]

    def _results(self, image: Any, first: Any, column: Any, lanes: Sequence[int]) -> None:
        rows, shape = self._rows, self._product.shape
        with T.serial(long(min(self._high, rows.row_count))) as inner:
            row = first + inner

            def stored() -> None:
                places = self._places(image, row)
                for tile, count in enumerate(lanes):
                    self._stored(places, column, tile, inner, count)

            conditions = []
            if rows.row_count % self._high:
                conditions.append(row < rows.row_count)
            if rows.pitch > shape.result.width:
                conditions.append(row % rows.pitch < shape.result.width)
            if conditions:
                with T.If(tirx.all(*conditions)), T.Then():
                    stored()
            else:
                stored()

    def _stored(self, places: Sequence[Any], column: Any, tile: int, row: Any, count: int) -> None:
        """A row of one tile, number by number through all stages."""
        with T.vectorized(long(count)) as lane:
            at = column * self._line + (tile * COLUMNS + lane)
            total = self._sum(row, tile, lane)
            known = {self._product.sums: self._operands.value(total, at)}
            for number, stage in enumerate(self._product.stages[:-1]):
                # A name in an expression would be written into it wherever it stands.
                place = self._high * self._line + (number * COLUMNS + lane)
                value = self._value(stage, [*places, at], known)
                T.buffer_store(self._sum_buffer, value, [place])
                known[stage.buffer] = self._sum_buffer[place]
            last = self._product.stages[-1:]
            value = self._value(last[0], [*places, at], known) if last else known.popitem()[1]
            T.buffer_store(self._product.result, value, [*places, at])

    def _places(self, image: Any, row: Any) -> list[Any]:
        """The indices of a row of the result."""
        if not self._product.is_convolution:
            return self._product.row_at(image, row)
        return [image, row // self._rows.pitch, row % self._rows.pitch]

    def _value(self, stage: Stage, indices: Sequence[Any], known: dict[Any, Any]) -> Any:
        variables = dict(zip(stage.variables, indices, strict=True))

        def loaded(buffer: Any, places: list[Any]) -> Any:
            return known[buffer] if buffer in known else buffer[tuple(places)]

        return rewritten(stage.value, variables, loaded)
