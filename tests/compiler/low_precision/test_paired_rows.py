"""A right operand that is packed in an inference lies as weights do that are packed before."""

from __future__ import annotations

import numpy as np
import pytest
import tvm
from tvm.script.ir_builder import IRBuilder
from tvm.tirx.script.builder import ir as T

from tests.compiler.low_precision.product_kernels import activations
from tests.compiler.low_precision.test_tile_kernel import TARGET, drawn, needs_tiles
from tunegate.compiler.low_precision import tiles as amx
from tunegate.compiler.low_precision.packed_weights import packed
from tunegate.compiler.low_precision.product import RowsOfTiles, product_of
from tunegate.compiler.low_precision.tile_kernel import PAIR, packed_rows


@needs_tiles
@pytest.mark.parametrize(("depth", "columns"), [(32, 16), (33, 20), (5, 3)])
def test_pairs_of_rows_lie_side_by_side(depth: int, columns: int) -> None:
    product = product_of(activations((2,), 8, depth, columns).function)
    assert product is not None
    rows = RowsOfTiles(product.shape)
    right = drawn(2, depth, columns)
    expected = np.concatenate([packed(each, rows) for each in right])
    with IRBuilder() as builder, T.prim_func(s_tir=True):
        T.func_name("main")
        T.arg("right", product.right)
        result = T.arg("result", T.buffer((expected.size,), "uint16"))
        with T.attr(0, amx.IMPORTED, amx.ROUND + PAIR):
            places = [T.address_of(each[0]) for each in (result, packed_rows(product, rows, 1))]
            T.evaluate(tvm.tirx.call_extern("handle", "memcpy", *places, 2 * expected.size))
    given = tvm.runtime.tensor(right)
    found = tvm.runtime.tensor(np.ones(expected.size, "uint16"))
    tvm.compile(builder.get(), target=TARGET)["main"](given, found)
    np.testing.assert_array_equal(found.numpy(), expected)
