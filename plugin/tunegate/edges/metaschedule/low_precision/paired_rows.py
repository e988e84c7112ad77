"""The right operand of a product of two activations, packed by the kernel itself.

Weights are packed when a model is built. What is computed in each inference is rounded to bfloat16
and laid out as the tiles read it before anything is multiplied: pairs of rows side by side.
"""

from __future__ import annotations

from typing import Any, Final

from tvm import tirx
from tvm.tirx.script.builder import ir as T

from tunegate.edges.metaschedule.low_precision.loops import long, loop, whole_buffer
from tunegate.edges.metaschedule.low_precision.product import Product
from tunegate.edges.metaschedule.low_precision.product_shape import COLUMNS, RowsOfTiles
from tunegate.edges.metaschedule.low_precision.tile_numbers import BFLOAT16

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
"""`pair(even, odd, to, evens, odds)` rounds so many numbers of two rows, and lays them out in
turn; zeros stand for the others. It comes with `tile_instructions.ROUND`, which declares what it
calls."""


def packed_rows(product: Product, rows: RowsOfTiles, threads: int) -> Any:
    """Emits the packing, and returns the buffer: for each image what `packed_weights.packed` makes
    of weights."""
    pairs, tiles = rows.tap_depth // 2, -(-rows.shape.out_channels // COLUMNS)
    size = tiles * pairs * 2 * COLUMNS
    buffer = whole_buffer(rows.shape.images * size, BFLOAT16.word)
    whole, rest = divmod(rows.shape.out_channels, COLUMNS)
    with loop(rows.shape.images, threads) as image:

        def line(pair: Any, present: int) -> None:
            """A pair of rows, of which so many are there."""
            with T.serial(long(whole)) as tile:
                column(pair, tile, COLUMNS, present)
            if rest:
                column(pair, long(whole), rest, present)

        def column(pair: Any, tile: Any, count: int, present: int) -> None:
            row = 2 * pair if present else long(0)
            ends = [
                T.address_of(product.right[(*product.image_at(image), at, tile * COLUMNS)])
                for at in (row, row + 1 if present > 1 else row)
            ]
            to = T.address_of(buffer[image * size + (tile * pairs + pair) * (2 * COLUMNS)])
            counts = [tirx.const(count * (present > n), "int32") for n in range(2)]
            T.evaluate(tirx.call_extern("void", _PAIR, *ends, to, *counts))

        both, one = divmod(rows.shape.channels, 2)
        with T.serial(long(both)) as pair:
            line(pair, 2)
        if one:
            line(long(both), 1)
        if pairs > both + one:
            with T.serial(long(pairs - both - one)) as pair:
                line(pair + (both + one), 0)
    return buffer
