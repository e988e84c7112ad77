"""The time of a product by tiles or by vectors, and whether float32 is faster.

An estimate that both sides of a comparison make alike: a measurement would let two kernels that are
equally fast flip between base and head. Its constants are fits to kernels on a Sapphire Rapids, and
that of `vdpbf16ps` to kernels on a Zen 4 (docs/benchmarks).
"""

from __future__ import annotations

from typing import Final

from tunegate.edges.metaschedule.low_precision.product_shape import (
    COLUMNS,
    ROWS,
    ProductShape,
    RowsOfTiles,
)
from tunegate.edges.metaschedule.low_precision.tile_numbers import BFLOAT16, TileNumbers

_BEGIN_NS: Final = 300.0
_LINE_NS: Final = 6.0
"""The cost of each piece of an image that is rounded, besides its numbers."""
_NUMBER_NS: Final = 0.05
_PACKED_NS: Final = 0.15
_STEP_NS: Final = 30.0
"""The cost of two by two tiles by a depth of one: loads and products."""
_DOT_NS: Final = 0.25
"""The cost of `vpdpbusd`: four products for each of 16 sums, with what loads them."""
_PAIR_DOT_NS: Final = 0.33
"""The cost of `vdpbf16ps`: two products for each of 16 sums."""
_RESULT_NS: Final = 3.5
"""The cost of 16 results that are read, put through the stages and written."""
_UNTUNED_GFLOPS: Final = 40.0
"""The best float32 rate to assume where no time is known: tiles have to be faster than that."""
_CLEARLY: Final = 0.9


def is_faster(
    shape: ProductShape,
    threads: int,
    float32_ms: float | None,
    numbers: TileNumbers = BFLOAT16,
    *,
    packs: bool = False,
) -> bool:
    """Returns whether tiles are clearly faster than float32, which took `float32_ms`, or was not
    measured (None)."""
    known_ns = shape.flops / _UNTUNED_GFLOPS / threads if float32_ms is None else float32_ms * 1e6
    return tiles_ns(shape, threads, numbers, packs=packs) < _CLEARLY * known_ns


def tiles_ns(
    shape: ProductShape,
    threads: int,
    numbers: TileNumbers = BFLOAT16,
    *,
    packs: bool = False,
) -> float:
    """The estimate in nanoseconds; `packs` where the right operand is an activation, too."""
    rows = RowsOfTiles(shape, numbers.depth)
    lines = shape.images * len(rows.phases) * rows.phase_height
    pieces = lines if rows.pixel == shape.channels else lines * shape.source.width
    rounding = pieces * _LINE_NS + shape.images * rows.image * _NUMBER_NS
    tiles = -(-shape.out_channels // COLUMNS)
    multiplying = shape.images * tiles * len(rows.taps) * _tap_ns(rows, numbers)
    results = shape.images * rows.row_count * tiles * _RESULT_NS
    image = shape.images * shape.source.height * shape.source.width * shape.channels
    measuring = image * _NUMBER_NS if numbers.is_whole else 0.0
    packing = tiles * COLUMNS * rows.tap_depth * shape.images * _PACKED_NS if packs else 0.0
    return _BEGIN_NS + (packing + measuring + rounding + multiplying + results) / threads


def _tap_ns(rows: RowsOfTiles, numbers: TileNumbers) -> float:
    """Returns the nanoseconds of one tap of all rows, for a tile of columns."""
    if not numbers.is_tiled:
        words = rows.tap_depth * numbers.each_bytes // 4
        return rows.row_count * words * (_DOT_NS if numbers.is_whole else _PAIR_DOT_NS)
    high = 1 if rows.row_count <= ROWS else 2
    blocks = -(-rows.row_count // (ROWS * high))
    return blocks * high * (rows.tap_depth // rows.depth) * _STEP_NS / 4
