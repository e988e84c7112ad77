"""The kernel of a product of narrow numbers, with sums of 32 bits.

The image is rounded once, then a block of sums stays in the processor while a tap is added up, by
tiles or by vectors. They go to 4 KB of the stack, from where the stages that follow, as bias and
ReLU, read them: what the model fuses stays fused.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tvm import tirx
from tvm.script.ir_builder import IRBuilder
from tvm.tirx.script.builder import ir as T

from tunegate.edges.metaschedule.low_precision import tile_instructions as amx
from tunegate.edges.metaschedule.low_precision.block_products import BlockProducts, SumBlock
from tunegate.edges.metaschedule.low_precision.expressions import rewritten
from tunegate.edges.metaschedule.low_precision.loops import long, loop, whole_buffer
from tunegate.edges.metaschedule.low_precision.operands import operands_of
from tunegate.edges.metaschedule.low_precision.packed_weights import column_words, packed_words
from tunegate.edges.metaschedule.low_precision.paired_rows import PAIR, packed_rows
from tunegate.edges.metaschedule.low_precision.product import Product, Stage
from tunegate.edges.metaschedule.low_precision.product_shape import COLUMNS, RowsOfTiles
from tunegate.edges.metaschedule.low_precision.tile_numbers import BFLOAT16, TileNumbers
from tunegate.edges.metaschedule.low_precision.tile_products import TileProducts
from tunegate.edges.metaschedule.low_precision.tile_rows import TileRows
from tunegate.edges.metaschedule.low_precision.vector_products import VectorProducts
from tunegate.edges.metaschedule.passes.unscheduled import IS_SCHEDULED
from tunegate.errors import UnsupportedModelError

_FLOAT = "float32"
_CACHED_BYTES = 512 * 1024
"""The rows that are multiplied by all columns in turn: they stay in the second cache."""


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


def _products_of(rows: RowsOfTiles, numbers: TileNumbers) -> BlockProducts:
    return TileProducts(rows, numbers) if numbers.is_tiled else VectorProducts(rows, numbers)


class _Kernel:
    def __init__(self, product: Product, function: Any, threads: int, numbers: TileNumbers) -> None:
        self._product, self._function, self._threads = product, function, threads
        self._numbers = numbers
        self._rows = RowsOfTiles(product.shape, numbers.depth)
        self._operands = operands_of(self._rows, numbers)
        self._products = _products_of(self._rows, numbers)
        self._columns = product.shape.out_channels
        self._high = self._products.rows
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
        packing = "" if self._product.right is None else PAIR
        return self._products.functions + self._operands.functions + packing

    def _packed_buffer(self) -> Any:
        return T.buffer((packed_words(self._rows, self._numbers),), self._numbers.word)

    @property
    def _column_size(self) -> int:
        """The weights of a column of tiles, in words."""
        return column_words(self._rows, self._numbers)

    def _body(self) -> None:
        with T.attr(0, amx.IMPORTED, self._functions):
            self._products.require()
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
            self._products.begin()
            kept = COLUMNS * len(self._product.stages)
            self._sum_buffer = whole_buffer(self._high * self._line + kept, _FLOAT)
            group = part // columns if is_divided else part
            if is_divided:
                self._column(group, part % columns, at_once)
            else:
                with T.serial(long(columns)) as column:
                    self._column(group, column, at_once)
            self._products.end()

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
        whole = [COLUMNS] * self._products.tiles
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
        """Writes one block of sums, through all taps, and then through the stages."""
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
                sums=lambda row, tile: T.address_of(self._sum(long(row), tile, 0)),
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
