"""The number of sums of a product in registers at once, where no record has a better one.

A step of a tile of c columns and v vectors reads v vectors of the one factor and c numbers of the
other, and adds c x v vectors of products. So the tile whose sums fill the registers waits least for
memory (Goto, van de Geijn: Anatomy of High-Performance Matrix Multiplication, TOMS 2008).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from tunegate.cost_model.experience import VectorRegisters

_MOST_VECTORS = 8
_OTHERS = 1
"""A register for the number that a vector is multiplied by."""
_FEW = 16
_VECTOR_READ = 1.5
"""The cost of a vector of weights beside a number of the image: those are in the nearest cache."""


class RegisterTile(NamedTuple):
    """`columns` neighbours along the axis of that number, and `lanes` along the innermost one."""

    axis: int
    columns: int
    lanes: int


def register_tile(
    extents: Sequence[int], axes: Sequence[int], has: VectorRegisters
) -> RegisterTile | None:
    """The tile of an output with these extents that reads least for each sum. Its columns are along
    one of the `axes`, on which only one of the two factors lies. None where the innermost extent
    fills no register."""
    tiles = list(_tiles(extents, axes, has))
    # Of equals that along the innermost axis, whose neighbours lie side by side.
    return max(tiles, key=lambda tile: (_per_read(tile, has), tile.axis), default=None)


def _tiles(
    extents: Sequence[int], axes: Sequence[int], has: VectorRegisters
) -> Iterator[RegisterTile]:
    for vectors in range(1, _MOST_VECTORS + 1):
        lanes = vectors * has.lanes
        if extents[-1] % lanes:
            continue
        for axis in axes:
            for columns in range(1, _most_columns(vectors, has) + 1):
                if extents[axis] % columns == 0:
                    yield RegisterTile(axis, columns, lanes)


def _most_columns(vectors: int, has: VectorRegisters) -> int:
    """Columns whose sums stay in registers beside the weights. A CPU with few registers has no
    product of a vector and a number in memory: LLVM spreads each number over a register, and where
    one vector is all that it meets, makes the sum there and spills the one before."""
    if vectors == 1 and has.count <= _FEW:
        return (has.count - _OTHERS - vectors) // 2
    return (has.count - _OTHERS) // vectors - 1


def _per_read(tile: RegisterTile, has: VectorRegisters) -> float:
    vectors = tile.lanes // has.lanes
    return vectors * tile.columns / (_VECTOR_READ * vectors + tile.columns)
