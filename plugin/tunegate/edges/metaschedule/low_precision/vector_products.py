"""Blocks by `vpdpbusd`, for processors without tiles: a row of sums is in registers of 16 int32.

Intel 64 and IA-32 Architectures Software Developer's Manual, volume 2: four products of a uint8 and
an int8 are added to each int32, and nothing saturates. Weights are packed as for tiles: a register
has four numbers of each of 16 columns.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from tvm import tirx
from tvm.tirx.script.builder import ir as T

from tunegate.edges.metaschedule.low_precision.block_products import SumBlock
from tunegate.edges.metaschedule.low_precision.packed_weights import column_words
from tunegate.edges.metaschedule.low_precision.product_shape import COLUMNS, RowsOfTiles
from tunegate.edges.metaschedule.low_precision.tile_numbers import TileNumbers

_MOST_ROWS: Final = 12
_FEW_ROWS: Final = 6
"""The most rows whose sums by four tiles take 24 of 32 registers, as twice as many by two do."""
_WORD_BYTES: Final = 4
_ROW_BYTES: Final = _WORD_BYTES * COLUMNS
_SUMS: Final = f"<{COLUMNS} x i32>"
_OPERAND: Final = f"<{_ROW_BYTES} x i8>"
_DOT: Final = "@llvm.x86.avx512.vpdpbusd.512"


class VectorProducts:
    def __init__(self, rows: RowsOfTiles, numbers: TileNumbers) -> None:
        self._rows, self._numbers = rows, numbers
        blocks = -(-rows.row_count // _MOST_ROWS)
        self.rows = -(-rows.row_count // blocks)
        self.tiles = 4 if self.rows <= _FEW_ROWS else 2

    @property
    def functions(self) -> str:
        declared = f"declare {_SUMS} {_DOT}({_SUMS}, {_OPERAND}, {_OPERAND})"
        return "\n".join([declared, *(_function(self.rows, n + 1) for n in range(self.tiles))])

    def require(self) -> None:
        """Nothing: who has the instruction may use it."""

    def begin(self) -> None:
        """Nothing: registers need no settings."""

    def end(self) -> None:
        """Nothing: registers need no settings."""

    def add_up(self, block: SumBlock) -> None:
        rows, numbers = self._rows, self._numbers
        column = _WORD_BYTES * column_words(rows, numbers)
        for tap, moved in enumerate(rows.taps):
            sizes = (
                numbers.each_bytes * rows.step,
                column,
                _ROW_BYTES * self.tiles,
                rows.tap_depth // _WORD_BYTES,
                int(tap == 0),
            )
            T.evaluate(
                tirx.call_extern(
                    "void",
                    _name(self.rows, block.tiles),
                    block.left(block.base + moved),
                    block.weights(block.first + column_words(rows, numbers, tap * rows.tap_depth)),
                    block.sums(0, 0),
                    *(tirx.const(each, "int64") for each in sizes),
                )
            )


def _name(rows: int, tiles: int) -> str:
    return f"tunegate_dot_{rows}x{tiles}"


def _function(rows: int, tiles: int) -> str:
    """LLVM's text of `dot(left, weights, sums, line, column, across, words, first)`: adds up the
    products of so many words of each row. The distances of rows, columns of tiles and rows of sums
    are in bytes; the first tap begins with zeros."""
    sizes = ", ".join(f"i64 %{each}" for each in ("line", "column", "across", "words", "first"))
    places = [(row, tile) for row in range(rows) for tile in range(tiles)]
    lines = (
        f"define void @{_name(rows, tiles)}(ptr %left, ptr %weights, ptr %sums, {sizes}) {{",
        "begin:",
        *(line for row in range(rows) for line in _row_addresses(row)),
        *(line for tile in range(tiles) for line in _address("weights", "column", tile)),
        "  %is_first = icmp ne i64 %first, 0",
        "  br i1 %is_first, label %next, label %more",
        "more:",
        *(line for row, tile in places for line in _loaded(row, tile)),
        "  br label %next",
        "next:",
        "  %word = phi i64 [ 0, %begin ], [ 0, %more ], [ %after, %next ]",
        *(_sum(row, tile) for row, tile in places),
        f"  %of_weights = mul i64 %word, {_ROW_BYTES}",
        f"  %of_left = mul i64 %word, {_WORD_BYTES}",
        *(line for tile in range(tiles) for line in _weights(tile)),
        *(line for row in range(rows) for line in _products(row, tiles)),
        "  %after = add i64 %word, 1",
        "  %is_left = icmp ult i64 %after, %words",
        "  br i1 %is_left, label %next, label %end",
        "end:",
        *(line for row, tile in places for line in _stored(row, tile)),
        "  ret void",
        "}",
    )
    return "\n".join(lines)


def _row_addresses(row: int) -> Iterator[str]:
    yield from _address("left", "line", row)
    yield from _address("sums", "across", row)


def _address(of: str, by: str, number: int) -> Iterator[str]:
    yield f"  %{by}{number} = mul i64 %{by}, {number}"
    yield f"  %{of}{number} = getelementptr i8, ptr %{of}, i64 %{by}{number}"


def _loaded(row: int, tile: int) -> Iterator[str]:
    at = f"{row}x{tile}"
    yield f"  %at{at} = getelementptr i8, ptr %sums{row}, i64 {tile * _ROW_BYTES}"
    yield f"  %old{at} = load {_SUMS}, ptr %at{at}, align 4"


def _sum(row: int, tile: int) -> str:
    at = f"{row}x{tile}"
    before = f"[ zeroinitializer, %begin ], [ %old{at}, %more ]"
    return f"  %s{at} = phi {_SUMS} {before}, [ %new{at}, %next ]"


def _weights(tile: int) -> Iterator[str]:
    yield f"  %w_at{tile} = getelementptr i8, ptr %weights{tile}, i64 %of_weights"
    yield f"  %w{tile} = load {_OPERAND}, ptr %w_at{tile}, align 4"


def _products(row: int, tiles: int) -> Iterator[str]:
    one = f"{_SUMS} %one{row}, {_SUMS} poison"
    yield f"  %l_at{row} = getelementptr i8, ptr %left{row}, i64 %of_left"
    yield f"  %four{row} = load i32, ptr %l_at{row}, align 1"
    yield f"  %one{row} = insertelement {_SUMS} poison, i32 %four{row}, i32 0"
    yield f"  %all{row} = shufflevector {one}, {_SUMS} zeroinitializer"
    yield f"  %l{row} = bitcast {_SUMS} %all{row} to {_OPERAND}"
    for tile in range(tiles):
        operands = f"{_SUMS} %s{row}x{tile}, {_OPERAND} %l{row}, {_OPERAND} %w{tile}"
        yield f"  %new{row}x{tile} = call {_SUMS} {_DOT}({operands})"


def _stored(row: int, tile: int) -> Iterator[str]:
    at = f"{row}x{tile}"
    yield f"  %to{at} = getelementptr i8, ptr %sums{row}, i64 {tile * _ROW_BYTES}"
    yield f"  store {_SUMS} %new{at}, ptr %to{at}, align 4"
