"""The image of a product in bfloat16, on processors that round to it."""

from __future__ import annotations

import numpy as np
import pytest
import tvm
from tvm.script.ir_builder import IRBuilder
from tvm.tirx.script.builder import ir as T

from tests.compiler.low_precision.product_kernels import convolution
from tests.compiler.low_precision.test_tile_kernel import TARGET
from tunegate.compiler.low_precision import tiles as amx
from tunegate.compiler.low_precision.operands import Bfloat16Operands
from tunegate.compiler.low_precision.product import product_of
from tunegate.compiler.low_precision.tile_kernel import TileRows
from tunegate.compiler.low_precision.tile_numbers import BFLOAT16
from tunegate.system.machine.cores import lacks_some

LACKING = lacks_some(("avx512_bf16",))


@pytest.mark.skipif(bool(LACKING), reason=LACKING)
def test_an_image_lies_rounded_inside_of_a_border_of_zeros() -> None:
    kernel = convolution((1, 3, 2, 1), (3, 3, 1, 1), padding=1, stages=False)
    product = product_of(kernel.function)
    assert product is not None
    with IRBuilder() as builder, T.prim_func(s_tir=True):
        T.func_name("main")
        T.arg("image", product.source)
        result = T.arg("result", T.buffer((5 * 4,), "uint16"))
        with T.attr(0, amx.IMPORTED, amx.ROUND):
            rows = TileRows(product, 16, Bfloat16Operands(BFLOAT16), 1)
            rows.fill()
            T.evaluate(
                tvm.tirx.call_extern("handle", "memcpy", T.address_of(result[0]), rows.at(0), 40)
            )
    image = np.array([1, 2, 3, 4, 5, 1 / 3], "float32").reshape(1, 3, 2, 1)
    given, found = tvm.runtime.tensor(image), tvm.runtime.tensor(np.zeros(20, "uint16"))
    tvm.compile(builder.get(), target=TARGET)["main"](given, found)
    bits = (found.numpy().astype("uint32") << 16).view("float32").reshape(5, 4)
    expected = np.zeros((5, 4))
    expected[1:4, 1:3] = image[0, :, :, 0]
    np.testing.assert_allclose(bits, expected, rtol=2.0**-9)
    assert (bits[[0, 4]] == 0).all()
    assert (bits[:, [0, 3]] == 0).all()
