"""Products of a block of rows with tiles of columns: by the processor's tiles or its vectors."""

from collections.abc import Callable, Iterator
from typing import Any, Final, NamedTuple, Protocol

from tvm import tirx
from tvm.tirx.script.builder import ir as T

from tunegate.compiler.low_precision.product import COLUMNS, RowsOfTiles
from tunegate.compiler.low_precision.tile_numbers import TileNumbers, column_words


class SumBlock(NamedTuple):
    """A block of sums. `left` returns the address of a number in the narrow image, at `base` for
    the block's first; `weights` that of a word in the packed weights, at `first` for the block's
    first. `sums` returns the address of a sum by its row and tile, for `tiles` tiles."""

    left: Callable[[Any], Any]
    base: Any
    weights: Callable[[Any], Any]
    first: Any
    sums: Callable[[int, int], Any]
    tiles: int


class BlockProducts(Protocol):
    """The code for one block of `rows` rows and at most `tiles` tiles of columns. `functions` is
    the LLVM text of what it calls."""

    @property
    def rows(self) -> int: ...
    @property
    def tiles(self) -> int: ...
    @property
    def functions(self) -> str: ...

    def require(self) -> None:
        """Emits an error if the machine cannot use the instruction right now."""
        ...

    def begin(self) -> None:
        """Emits what comes before the first block of a thread."""
        ...

    def end(self) -> None:
        """Emits what comes after the last block."""
        ...

    def add_up(self, block: SumBlock) -> None:
        """Emits a block's sums over all taps."""
        ...


# Blocks by `vpdpbusd` or `vdpbf16ps`, for processors without tiles: a register holds a row of 16
# sums. Intel 64 and IA-32 Architectures Software Developer's Manual, volume 2. `vpdpbusd` adds four
# products of a uint8 and an int8 to each int32, without saturation; `vdpbf16ps` adds two products
# of bfloat16 to each float32. Weights are packed as for tiles: a register has four bytes of each of
# 16 columns.

_MOST_ROWS: Final = 12
_FEW_ROWS: Final = 6
"""Up to this many rows are summed by four tiles at a time; that takes 24 of 32 registers, as twice
the rows by two tiles do."""
_WORD_BYTES: Final = 4
_ROW_BYTES: Final = _WORD_BYTES * COLUMNS
_WORDS: Final = f"<{COLUMNS} x i32>"


_REGISTERS: Final = ",".join(f"~{{zmm{number}}}" for number in range(32))
_FORGET: Final = f'  call void asm sideeffect "", "{_REGISTERS}"()'
"""An instruction after which no register holds a value. Otherwise LLVM would keep the constants of
the later stages in registers while products are added up, and the sums on the stack."""


class _Dot(NamedTuple):
    """LLVM's register types of sums and of an operand, and its name of the instruction."""

    sums: str
    operand: str
    name: str


_DOTS: Final = {
    "vpdpbusd": _Dot(_WORDS, f"<{_ROW_BYTES} x i8>", "@llvm.x86.avx512.vpdpbusd.512"),
    "vdpbf16ps": _Dot(
        f"<{COLUMNS} x float>",
        f"<{_ROW_BYTES // 2} x bfloat>",
        "@llvm.x86.avx512bf16.dpbf16ps.512",
    ),
}


class VectorProducts:
    def __init__(self, rows: RowsOfTiles, numbers: TileNumbers) -> None:
        self._rows, self._numbers = rows, numbers
        blocks = -(-rows.row_count // _MOST_ROWS)
        self.rows = -(-rows.row_count // blocks)
        self.tiles = 4 if self.rows <= _FEW_ROWS else 2

    @property
    def functions(self) -> str:
        dot = _DOTS[self._numbers.multiply]
        declaration = f"declare {dot.sums} {dot.name}({dot.sums}, {dot.operand}, {dot.operand})"
        definitions = (
            _function(_name(self._numbers.multiply, self.rows, wide), dot, self.rows, wide)
            for wide in range(1, self.tiles + 1)
        )
        return "\n".join([declaration, *definitions])

    def require(self) -> None:
        """Does nothing: a processor that has the instruction may use it."""

    def begin(self) -> None:
        """Does nothing: registers need no settings."""

    def end(self) -> None:
        """Does nothing: registers need no settings."""

    def add_up(self, block: SumBlock) -> None:
        rows, numbers = self._rows, self._numbers
        column = numbers.word_bytes * column_words(rows, numbers)
        for tap, offset in enumerate(rows.taps):
            sizes = (
                numbers.each_bytes * rows.step,
                column,
                _ROW_BYTES * self.tiles,
                numbers.each_bytes * rows.tap_depth // _WORD_BYTES,
                int(tap == 0),
            )
            T.evaluate(
                tirx.call_extern(
                    "void",
                    _name(numbers.multiply, self.rows, block.tiles),
                    block.left(block.base + offset),
                    block.weights(block.first + column_words(rows, numbers, tap * rows.tap_depth)),
                    block.sums(0, 0),
                    *(tirx.const(size, "int64") for size in sizes),
                )
            )


def _name(multiply: str, rows: int, tiles: int) -> str:
    return f"tunegate_{multiply}_{rows}x{tiles}"


def _function(name: str, dot: _Dot, rows: int, tiles: int) -> str:
    """Returns LLVM text of `dot(left, weights, sums, line, column, across, words, first)`, which
    adds up the products of `words` words of each row. The distances of rows, columns of tiles and
    rows of sums are in bytes; the first tap begins with zeros."""
    # A loop over the words. All sums of the block are its phis, which LLVM keeps in registers: they
    # begin at zero or at what `sums` has, and are stored once, behind the loop.
    sizes = ", ".join(f"i64 %{each}" for each in ("line", "column", "across", "words", "first"))
    places = [(row, tile) for row in range(rows) for tile in range(tiles)]
    lines = (
        f"define void @{name}(ptr %left, ptr %weights, ptr %sums, {sizes}) {{",
        "begin:",
        _FORGET,
        *(line for row in range(rows) for line in _row_addresses(row)),
        *(line for tile in range(tiles) for line in _address("weights", "column", tile)),
        "  %is_first = icmp ne i64 %first, 0",
        "  br i1 %is_first, label %next, label %more",
        "more:",
        *(line for row, tile in places for line in _load(dot, row, tile)),
        "  br label %next",
        "next:",
        "  %word = phi i64 [ 0, %begin ], [ 0, %more ], [ %after, %next ]",
        *(_sum(dot, row, tile) for row, tile in places),
        f"  %of_weights = mul i64 %word, {_ROW_BYTES}",
        f"  %of_left = mul i64 %word, {_WORD_BYTES}",
        *(line for tile in range(tiles) for line in _weights(dot, tile)),
        *(line for row in range(rows) for line in _products(dot, row, tiles)),
        "  %after = add i64 %word, 1",
        "  %is_left = icmp ult i64 %after, %words",
        "  br i1 %is_left, label %next, label %end",
        "end:",
        *(line for row, tile in places for line in _store(dot, row, tile)),
        _FORGET,
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


def _load(dot: _Dot, row: int, tile: int) -> Iterator[str]:
    at = f"{row}x{tile}"
    yield f"  %at{at} = getelementptr i8, ptr %sums{row}, i64 {tile * _ROW_BYTES}"
    yield f"  %old{at} = load {dot.sums}, ptr %at{at}, align 4"


def _sum(dot: _Dot, row: int, tile: int) -> str:
    at = f"{row}x{tile}"
    before = f"[ zeroinitializer, %begin ], [ %old{at}, %more ]"
    return f"  %s{at} = phi {dot.sums} {before}, [ %new{at}, %next ]"


def _weights(dot: _Dot, tile: int) -> Iterator[str]:
    yield f"  %w_at{tile} = getelementptr i8, ptr %weights{tile}, i64 %of_weights"
    yield f"  %w{tile} = load {dot.operand}, ptr %w_at{tile}, align 4"


def _products(dot: _Dot, row: int, tiles: int) -> Iterator[str]:
    one = f"{_WORDS} %one{row}, {_WORDS} poison"
    yield f"  %l_at{row} = getelementptr i8, ptr %left{row}, i64 %of_left"
    yield f"  %four{row} = load i32, ptr %l_at{row}, align 1"
    yield f"  %one{row} = insertelement {_WORDS} poison, i32 %four{row}, i32 0"
    yield f"  %all{row} = shufflevector {one}, {_WORDS} zeroinitializer"
    yield f"  %l{row} = bitcast {_WORDS} %all{row} to {dot.operand}"
    for tile in range(tiles):
        operands = f"{dot.sums} %s{row}x{tile}, {dot.operand} %l{row}, {dot.operand} %w{tile}"
        yield f"  %new{row}x{tile} = call {dot.sums} {dot.name}({operands})"


def _store(dot: _Dot, row: int, tile: int) -> Iterator[str]:
    at = f"{row}x{tile}"
    yield f"  %to{at} = getelementptr i8, ptr %sums{row}, i64 {tile * _ROW_BYTES}"
    yield f"  store {dot.sums} %new{at}, ptr %to{at}, align 4"
