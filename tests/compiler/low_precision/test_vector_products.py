from __future__ import annotations

import pytest

from tunegate.compiler.low_precision.product import Extents, ProductShape, RowsOfTiles
from tunegate.compiler.low_precision.tile_numbers import BFLOAT16_VECTORS, INT8_VECTORS, TileNumbers
from tunegate.compiler.low_precision.vector_products import VectorProducts


@pytest.mark.parametrize("numbers", [INT8_VECTORS, BFLOAT16_VECTORS], ids=["int8", "bfloat16"])
@pytest.mark.parametrize(
    ("rows", "at_once", "tiles"), [(1, 1, 4), (6, 6, 4), (7, 7, 2), (14, 7, 2), (24, 12, 2)]
)
def test_blocks_are_even_and_fill_the_registers(
    rows: int, at_once: int, tiles: int, numbers: TileNumbers
) -> None:
    extents = Extents(rows, 1)
    shape = ProductShape(1, extents, 64, extents, 64)
    found = VectorProducts(RowsOfTiles(shape, numbers.depth), numbers)
    assert (found.rows, found.tiles) == (at_once, tiles)
    assert found.rows * found.tiles <= 24
    for wide in range(1, tiles + 1):
        assert f"define void @tunegate_{numbers.multiply}_{at_once}x{wide}(" in found.functions
