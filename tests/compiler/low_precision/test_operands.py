from __future__ import annotations

from tunegate.compiler.low_precision.operands import operands_of
from tunegate.compiler.low_precision.product import Extents, ProductShape, RowsOfTiles
from tunegate.compiler.low_precision.tile_numbers import NUMBERS


def test_each_kind_of_number_has_its_instruction() -> None:
    extents = Extents(4, 4)
    shape = ProductShape(1, extents, 3, extents, 4)
    found = {
        numbers.multiply: operands_of(RowsOfTiles(shape, numbers.depth), numbers)
        for each in NUMBERS.values()
        for numbers in each
    }
    assert {name: each.numbers.precision for name, each in found.items()} == {
        "tdpbf16ps": "bfloat16",
        "vdpbf16ps": "bfloat16",
        "tdpbusd": "int8",
        "vpdpbusd": "int8",
    }
