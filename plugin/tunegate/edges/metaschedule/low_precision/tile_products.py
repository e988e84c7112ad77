"""Blocks by AMX: two by two tiles of sums stay in the processor while all taps are added up."""

from __future__ import annotations

from typing import Final

from tvm.tirx.script.builder import ir as T

from tunegate.edges.metaschedule.low_precision import tile_instructions as amx
from tunegate.edges.metaschedule.low_precision.block_products import SumBlock
from tunegate.edges.metaschedule.low_precision.loops import long
from tunegate.edges.metaschedule.low_precision.packed_weights import column_words
from tunegate.edges.metaschedule.low_precision.product_shape import COLUMNS, ROWS, RowsOfTiles
from tunegate.edges.metaschedule.low_precision.tile_numbers import TileNumbers

_LEFT, _RIGHT = 4, 6
"""The first tiles of the operands, behind four of sums."""


class TileProducts:
    tiles: Final = 2
    functions: Final = amx.PERMIT

    def __init__(self, rows: RowsOfTiles, numbers: TileNumbers) -> None:
        self._rows, self._numbers = rows, numbers
        self._high = 1 if rows.row_count <= ROWS else 2

    @property
    def rows(self) -> int:
        return self._high * ROWS

    def require(self) -> None:
        amx.require_permission()

    def begin(self) -> None:
        amx.begin_tiles(min(ROWS, self._rows.row_count))

    def end(self) -> None:
        amx.end_tiles()

    def add_up(self, block: SumBlock) -> None:
        rows, high, wide = self._rows, self._high, block.tiles
        for tile in range(high * wide):
            amx.clear(tile)
        for tap, moved in enumerate(rows.taps):
            with T.serial(long(rows.tap_depth // rows.depth)) as depth:
                for tile in range(high):
                    place = block.base + (moved + tile * ROWS * rows.step) + depth * rows.depth
                    line = self._numbers.each_bytes * rows.step
                    amx.load_tile(_LEFT + tile, block.left(place), line)
                for tile in range(wide):
                    place = block.first + (tile * self._words() + self._words(tap * rows.tap_depth))
                    address = block.weights(place + depth * self._words(rows.depth))
                    amx.load_tile(_RIGHT + tile, address, amx.BYTES)
                for tile in range(high * wide):
                    left, right = _LEFT + tile // wide, _RIGHT + tile % wide
                    amx.add_products(self._numbers.multiply, tile, left, right)
        for tile in range(high * wide):
            amx.store_tile(
                tile, block.sums(tile // wide * ROWS, tile % wide), 4 * self.tiles * COLUMNS
            )

    def _words(self, depth: int | None = None) -> int:
        return column_words(self._rows, self._numbers, depth)
