from __future__ import annotations

import numpy as np
import pytest
import tvm
from hypothesis import given
from hypothesis import strategies as st
from tvm.script.ir_builder import IRBuilder
from tvm.tirx.script.builder import ir as T

from tests.compiler.low_precision.test_tile_kernel import TARGET, needs_tiles
from tunegate.compiler.low_precision import tiles as amx
from tunegate.compiler.low_precision.operands import QUANTIZE, ImageScale
from tunegate.compiler.low_precision.packed_weights import (
    bfloat16_bits,
    packed,
    packed_words,
    quantized_columns,
)
from tunegate.compiler.low_precision.product import Extents, ProductShape, RowsOfTiles
from tunegate.compiler.low_precision.tile_numbers import BFLOAT16, INT8


def widened(bits: np.ndarray) -> np.ndarray:
    return (bits.astype("uint32") << 16).view("float32")


@given(
    st.floats(
        width=32, allow_nan=False, allow_infinity=False, min_value=-(2.0**120), max_value=2.0**120
    )
)
def test_a_number_is_rounded_to_one_of_its_two_neighbours_in_bfloat16(value: float) -> None:
    exact = np.array([value], "float32")
    (found,) = widened(bfloat16_bits(exact))
    step = np.spacing(np.abs(exact[0]), dtype="float32") * 2.0**16
    assert abs(float(found) - value) <= step / 2


def test_of_two_equally_near_ones_the_even_is_taken() -> None:
    halfway = np.array([0x3F808000, 0x3F818000], "uint32").view("float32")
    assert bfloat16_bits(halfway).tolist() == [0x3F80, 0x3F82]


def test_pairs_of_depth_lie_side_by_side_in_tiles_of_columns() -> None:
    extents = Extents(4, 4)
    rows = RowsOfTiles(ProductShape(1, extents, 3, extents, 18, window=Extents(2, 2)))
    weights = np.arange(2 * 2 * 3 * 18, dtype="float32").reshape(2, 2, 3, 18)
    found = widened(packed(weights, rows)).reshape(2, 2, 1, 16, 16, 2)
    for tap, depth, column in ((0, 0, 0), (1, 5, 17), (0, 3, 16), (1, 2, 15)):
        place = column // 16, tap, 0, depth // 2, column % 16, depth % 2
        expected = widened(bfloat16_bits(weights.reshape(2, 6, 18)[tap, depth, column]))
        assert found[place] == expected[()]
    assert found[1, :, :, :, 2:].any() == np.False_
    assert found[:, :, :, 3:].any() == np.False_


def test_a_column_in_int8_has_its_own_scale_around_0() -> None:
    weights = np.array([[[1.0, -508.0, 0.0], [-2.0, 4.0, 0.0]]], "float32")
    scales, whole = quantized_columns(weights)
    np.testing.assert_allclose(scales, [2 / 127, 4, 1])
    assert whole.tolist() == [[[64, -127, 0], [-127, 1, 0]]]


def test_behind_weights_in_int8_are_the_sums_and_scales_of_columns() -> None:
    extents = Extents(4, 4)
    rows = RowsOfTiles(ProductShape(1, extents, 70, extents, 18), INT8.depth)
    weights = np.random.default_rng(1).normal(size=(70, 18)).astype("float32")
    found = packed(weights, rows, INT8)
    scales, whole = quantized_columns(weights.reshape(1, 70, 18))
    assert found.size == packed_words(rows, INT8)
    assert packed(weights, RowsOfTiles(rows.shape), BFLOAT16).size == packed_words(
        RowsOfTiles(rows.shape), BFLOAT16
    )
    np.testing.assert_array_equal(found[-64:-46], whole.sum(axis=(0, 1)))
    np.testing.assert_array_equal(found[-32:-14].view("float32"), scales)
    tiles = found[:-64].view("int8").reshape(2, 2, 16, 16, 4)
    for depth, column in ((0, 0), (5, 17), (69, 3), (63, 16)):
        place = column // 16, depth // 64, depth % 64 // 4, column % 16, depth % 4
        assert tiles[place] == whole[0, depth, column]


# Ranges and rounding as the kernels do them, on processors that have the instructions.


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
