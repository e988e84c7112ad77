"""Ranges and rounding as the kernels do them, on processors that have the instructions."""

from __future__ import annotations

import numpy as np
import pytest
import tvm
from tvm.script.ir_builder import IRBuilder
from tvm.tirx.script.builder import ir as T

from tests.compiler.low_precision.test_tile_kernel import TARGET, needs_tiles
from tunegate.compiler.low_precision import tiles as amx
from tunegate.compiler.low_precision.operands import QUANTIZE, ImageScale
from tunegate.compiler.low_precision.product import Extents, ProductShape, RowsOfTiles
from tunegate.compiler.low_precision.tile_numbers import INT8


def quantized(image: np.ndarray, threads: int) -> np.ndarray:
    """The image as uint8, with three numbers behind it that stand for 0."""
    extents = Extents(image.size, 1)
    rows = RowsOfTiles(ProductShape(1, extents, 1, extents, 1), INT8.depth)
    scale = ImageScale(rows, INT8)
    with IRBuilder() as builder, T.prim_func(s_tir=True):
        T.func_name("main")
        source = T.arg("image", T.buffer((image.size,), "float32"))
        result = T.arg("result", T.buffer((image.size + 3,), "uint8"))
        with T.attr(0, amx.IMPORTED, QUANTIZE):
            scale.measure(source, threads)
            places = T.address_of(source[0]), T.address_of(result[0])
            scale.quantize(*places, image.size, image.size + 3)
    given, found = tvm.runtime.tensor(image), tvm.runtime.tensor(np.zeros(image.size + 3, "uint8"))
    tvm.compile(builder.get(), target=TARGET)["main"](given, found)
    whole: np.ndarray = found.numpy()
    return whole


@needs_tiles
@pytest.mark.parametrize(("size", "threads"), [(1, 1), (63, 1), (64, 1), (150, 1), (9001, 2)])
def test_a_range_with_0_in_it_has_256_levels(size: int, threads: int) -> None:
    image = np.random.default_rng(size).uniform(-1, 3, size).astype("float32")
    low, high = min(float(image.min()), 0.0), max(float(image.max()), 0.0)
    step = (high - low) / 255
    zero = np.floor(0.5 - low / step)
    found = quantized(image, threads)
    np.testing.assert_array_equal(found[-3:], zero)
    assert np.abs((found[:-3] - zero) * step - image).max() <= 0.501 * step


@needs_tiles
def test_what_is_no_number_becomes_one_of_the_levels() -> None:
    image = np.array([np.nan, 3.0, -1.0, 0.0], "float32")
    assert quantized(image, 1)[1:].tolist() == [255, 0, 64, 64, 64, 64]
