from __future__ import annotations

import pytest

from tunegate.edges.metaschedule.low_precision.product_shape import (
    Extents,
    ProductShape,
    RowsOfTiles,
)
from tunegate.edges.metaschedule.low_precision.tile_numbers import INT8_VECTORS
from tunegate.edges.metaschedule.low_precision.vector_products import VectorProducts


@pytest.mark.parametrize(
    ("rows", "at_once", "tiles"), [(1, 1, 4), (6, 6, 4), (7, 7, 2), (14, 7, 2), (24, 12, 2)]
)
def test_blocks_are_even_and_fill_the_registers(rows: int, at_once: int, tiles: int) -> None:
    extents = Extents(rows, 1)
    shape = ProductShape(1, extents, 64, extents, 64)
    found = VectorProducts(RowsOfTiles(shape, INT8_VECTORS.depth), INT8_VECTORS)
    assert (found.rows, found.tiles) == (at_once, tiles)
    assert found.rows * found.tiles <= 24
    for wide in range(1, tiles + 1):
        assert f"define void @tunegate_dot_{at_once}x{wide}(" in found.functions
