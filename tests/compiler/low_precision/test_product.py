import subprocess
import sys
from typing import Any

import numpy as np
import pytest
import tvm
from hypothesis import given, settings
from hypothesis import strategies as st
from tvm import te, tirx
from tvm.script.ir_builder import IRBuilder
from tvm.tirx.script.builder import ir as T

from tests.compiler.low_precision.product_kernels import activations, convolution, matrices
from tests.compiler.low_precision.test_tile_kernel import TARGET, needs_tiles
from tests.support.present import present
from tunegate.compiler.low_precision import tile_numbers
from tunegate.compiler.low_precision import tiles as amx
from tunegate.compiler.low_precision.expressions import rewritten, whole_buffer
from tunegate.compiler.low_precision.lower_kernels import is_faster, tiles_ns
from tunegate.compiler.low_precision.operands import QUANTIZE, Bfloat16Operands, Int8Operands
from tunegate.compiler.low_precision.product import (
    DEPTH,
    Extents,
    ProductShape,
    RowsOfTiles,
    product_of,
)
from tunegate.compiler.low_precision.tile_kernel import TileRows
from tunegate.compiler.low_precision.vector_products import VectorProducts
from tunegate.errors import UnsupportedModelError
from tunegate.system.machine.cores import lacks_some


def test_a_convolution_with_a_border_a_bias_and_a_relu_is_read() -> None:
    kernel = convolution((2, 9, 7, 5), (3, 2, 5, 4), strides=(2, 1), padding=(1, 1, 1, 0))
    found = present(product_of(kernel.function))
    assert found.shape == ProductShape(
        images=2,
        source=Extents(9, 7),
        channels=5,
        result=Extents(5, 7),
        out_channels=4,
        window=Extents(3, 2),
        stride=Extents(2, 1),
        dilation=Extents(1, 1),
        padding=Extents(1, 1),
    )
    assert found.row_extents == (2, 5, 7)
    assert found.weights == 1
    assert len(found.stages) == 2
    assert found.result.same_as(kernel.function.params[-1])


def test_matrices_that_are_both_computed_are_multiplied_one_by_one() -> None:
    kernel = activations((2, 3), 8, 5, 6)
    found = present(product_of(kernel.function))
    assert found.shape == ProductShape(6, Extents(8, 1), 5, Extents(8, 1), 6)
    assert found.row_extents == (2, 3, 8)
    assert found.right.same_as(kernel.function.params[1])
    assert len(found.stages) == 1


def test_operations_are_counted() -> None:
    found = present(product_of(convolution((1, 4, 4, 8), (3, 3, 8, 2), padding=1).function))
    assert found.shape.flops == 2 * 16 * 9 * 8 * 2


def grouped() -> Any:
    return convolution((1, 6, 6, 8), (3, 3, 4, 8), groups=2).function


def without_constants() -> Any:
    return matrices((4,), 8, 6).function.without_attr("layout_free_buffers")


def summed_only() -> Any:
    a = te.placeholder((4, 8), name="a")
    k = te.reduce_axis((0, 8), name="k")
    return te.create_prim_func([a, te.compute((4,), lambda i: te.sum(a[i, k], axis=k))])


def of_float64() -> Any:
    a, b = te.placeholder((4, 8), "float64", "a"), te.placeholder((8, 3), "float64", "b")
    k = te.reduce_axis((0, 8), name="k")
    made = te.compute((4, 3), lambda i, j: te.sum(a[i, k] * b[k, j], axis=k))
    return te.create_prim_func([a, b, made]).with_attr("layout_free_buffers", [1])


def turned() -> Any:
    """Its weights are (columns, depth)."""
    a, b = te.placeholder((4, 8), "float32", "a"), te.placeholder((3, 8), "float32", "b")
    k = te.reduce_axis((0, 8), name="k")
    made = te.compute((4, 3), lambda i, j: te.sum(a[i, k] * b[j, k], axis=k))
    return te.create_prim_func([a, b, made]).with_attr("layout_free_buffers", [1])


@pytest.mark.parametrize("made", [grouped, without_constants, summed_only, of_float64, turned])
def test_another_kernel_is_none(made: Any) -> None:
    assert product_of(made()) is None


def test_a_function_without_blocks_is_none() -> None:
    a = te.placeholder((4,), name="a")
    function = te.create_prim_func([a, te.compute((4,), lambda i: a[i] + 1.0)])
    assert product_of(function.with_body(tvm.tirx.Evaluate(tvm.tirx.const(0)))) is None


# The places of operands, tried with NumPy: what tiles would read is multiplied one row after the
# other.


@st.composite
def shapes(draw: st.DrawFn) -> ProductShape:
    small = st.integers(1, 3)
    window, stride, dilation = (Extents(draw(small), draw(small)) for _ in range(3))
    padding = Extents(draw(st.integers(0, 2)), draw(st.integers(0, 2)))
    result = Extents(draw(st.integers(1, 5)), draw(st.integers(1, 5)))
    cut = Extents(draw(st.integers(0, 2)), draw(st.integers(0, 2)))
    source = Extents(
        *(
            max(
                1,
                (result[n] - 1) * stride[n]
                + (window[n] - 1) * dilation[n]
                + 1
                - padding[n]
                - cut[n],
            )
            for n in range(2)
        )
    )
    return ProductShape(
        images=draw(st.integers(1, 2)),
        source=source,
        channels=draw(st.sampled_from((1, 3, 32, 33))),
        result=result,
        out_channels=4,
        window=window,
        stride=stride,
        dilation=dilation,
        padding=padding,
    )


def padded(image: np.ndarray, shape: ProductShape) -> np.ndarray:
    """The image inside of as much zero as any window reaches."""
    found = np.zeros((shape.images, 40, 40, shape.channels))
    top, left = shape.padding
    found[:, top : top + shape.source.height, left : left + shape.source.width] = image
    return found


def convolved(image: np.ndarray, weights: np.ndarray, shape: ProductShape) -> np.ndarray:
    whole = padded(image, shape)
    found = np.zeros((shape.images, *shape.result, shape.out_channels))
    for y, x in np.ndindex(*shape.result):
        for r, c in np.ndindex(*shape.window):
            row = y * shape.stride.height + r * shape.dilation.height
            column = x * shape.stride.width + c * shape.dilation.width
            found[:, y, x] += whole[:, row, column] @ weights[r, c]
    return found


def read_by_tiles(image: np.ndarray, weights: np.ndarray, shape: ProductShape) -> np.ndarray:
    rows = RowsOfTiles(shape)
    whole = padded(image, shape)
    places = np.full(rows.size(rows.row_count) + (shape.images - 1) * rows.image, np.nan)
    width = rows.line // rows.pixel
    for number in range(shape.images):
        for phase, remainder in enumerate(rows.phases):
            for line in range(rows.phase_height):
                pixels = np.zeros((width, rows.pixel))
                y = line * shape.stride.height + remainder
                pixels[:, : shape.channels] = whole[number, y, :width]
                begin = number * rows.image + (phase * rows.phase_height + line) * rows.line
                places[begin : begin + rows.line] = pixels.reshape(-1)
    places[shape.images * rows.image :][:DEPTH] = 0
    factors = np.zeros((len(rows.taps), rows.tap_depth, shape.out_channels))
    factors[:, : rows.tap_numbers] = weights.reshape(len(rows.taps), rows.tap_numbers, -1)
    found = np.zeros((shape.images, *shape.result, shape.out_channels))
    for number, y, x in np.ndindex(shape.images, *shape.result):
        begin = number * rows.image + (y * rows.pitch + x) * rows.step
        for tap, moved in enumerate(rows.taps):
            found[number, y, x] += places[begin + moved :][: rows.tap_depth] @ factors[tap]
    return found


@settings(max_examples=60, deadline=None)
@given(shapes())
def test_what_tiles_read_is_the_convolution(shape: ProductShape) -> None:
    rng = np.random.default_rng(0)
    image = rng.integers(-4, 5, (shape.images, *shape.source, shape.channels)).astype(float)
    weights = rng.integers(-4, 5, (*shape.window, shape.channels, shape.out_channels)).astype(float)
    found = read_by_tiles(image, weights, shape)
    np.testing.assert_array_equal(found, convolved(image, weights, shape))


def test_a_row_of_the_window_is_one_tap_where_its_pixels_are_neighbours() -> None:
    extents = Extents(8, 8)
    near = RowsOfTiles(ProductShape(1, extents, 3, extents, 4, window=Extents(3, 3)))
    far = RowsOfTiles(near.shape._replace(dilation=Extents(1, 2)))
    assert (len(near.taps), near.tap_depth, near.pixel) == (3, 32, 3)
    assert (len(far.taps), far.tap_depth, far.pixel) == (9, 32, 32)


@pytest.mark.parametrize(
    "numbers", [tile_numbers.INT8_VECTORS, tile_numbers.BFLOAT16_VECTORS], ids=["int8", "bfloat16"]
)
@pytest.mark.parametrize(
    ("rows", "at_once", "tiles"), [(1, 1, 4), (6, 6, 4), (7, 7, 2), (14, 7, 2), (24, 12, 2)]
)
def test_blocks_are_even_and_fill_the_registers(
    rows: int, at_once: int, tiles: int, numbers: tile_numbers.TileNumbers
) -> None:
    extents = Extents(rows, 1)
    shape = ProductShape(1, extents, 64, extents, 64)
    found = VectorProducts(RowsOfTiles(shape, numbers.depth), numbers)
    assert (found.rows, found.tiles) == (at_once, tiles)
    assert found.rows * found.tiles <= 24
    for wide in range(1, tiles + 1):
        assert f"define void @tunegate_{numbers.multiply}_{at_once}x{wide}(" in found.functions


def load(buffer: Any, indices: list[Any]) -> Any:
    return buffer[tuple(indices)]


def test_variables_and_loads_are_replaced_in_every_kind_of_expression() -> None:
    x, y = tirx.Var("x", "int64"), tirx.Var("y", "int64")
    buffer = tirx.decl_buffer((8,), "float32")

    def of(at: Any) -> Any:
        number = tirx.Cast("float32", at)
        above = tirx.max(buffer[at + 1], tirx.const(0.0))
        return tirx.Select(tirx.Not(at < 3), tirx.exp(buffer[at] * number), above)

    tvm.ir.assert_structural_equal(rewritten(of(x), {x: y}, load), of(y))


def test_an_expression_of_another_kind_is_refused() -> None:
    x = tirx.Var("x", "int64")
    with pytest.raises(UnsupportedModelError, match="Ramp"):
        rewritten(tirx.Ramp(x, 1, 4), {}, load)


# The tiles of a product.


WITHOUT_ROOM = """
import ctypes

class Stack(ctypes.Structure):
    _fields_ = [("at", ctypes.c_void_p), ("flags", ctypes.c_int), ("size", ctypes.c_size_t)]

room = ctypes.create_string_buffer(4096)
stack = Stack(ctypes.cast(room, ctypes.c_void_p), 0, 4096)
print(ctypes.CDLL(None).sigaltstack(ctypes.byref(stack), None))
"""
"""Linux permits tiles only where each alternative stack for signals has room for them, and refuses
this one once tiles are permitted: ONNX Runtime asks for them when it is imported."""
KERNEL = """
from tests.compiler.low_precision.product_kernels import matrices
from tests.compiler.low_precision.test_tile_kernel import computed, drawn
print(computed(matrices((4,), 64, 32), drawn(4, 64)).shape)
"""


def run(program: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", "import sys; sys.path.insert(0, '.')\n" + program],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


@needs_tiles
def test_a_process_that_asked_for_nothing_runs_a_kernel() -> None:
    assert run(KERNEL).stdout.strip() == "(4, 32)"


@needs_tiles
def test_without_permission_a_kernel_is_an_error_and_no_crash() -> None:
    found = run(WITHOUT_ROOM + KERNEL)
    assert found.stdout.strip() == "0"
    assert "this machine does not permit AMX tiles" in found.stderr
    assert found.returncode == 1


def square(size: int, channels: int, out: int, window: int = 1) -> ProductShape:
    extents = Extents(size, size)
    return ProductShape(1, extents, channels, extents, out, window=Extents(window, window))


MEASURED_US = [
    (tile_numbers.BFLOAT16, square(28, 128, 128, 3), 146),
    (tile_numbers.BFLOAT16, square(28, 256, 512), 181),
    (tile_numbers.BFLOAT16, ProductShape(1, Extents(128, 1), 768, Extents(128, 1), 768), 119),
    (tile_numbers.INT8, square(28, 128, 128, 3), 75),
    (tile_numbers.INT8, square(28, 256, 512), 206),
    (tile_numbers.INT8, square(7, 512, 512), 13),
    (tile_numbers.INT8_VECTORS, square(28, 128, 128, 3), 443),
    (tile_numbers.INT8_VECTORS, square(14, 256, 256, 3), 463),
    (tile_numbers.BFLOAT16_VECTORS, square(28, 128, 128, 3), 1106),
    (tile_numbers.BFLOAT16_VECTORS, square(14, 256, 256, 3), 1186),
    (
        tile_numbers.BFLOAT16_VECTORS,
        ProductShape(1, Extents(128, 1), 768, Extents(128, 1), 768),
        709,
    ),
]


def test_the_estimate_is_near_what_was_measured() -> None:
    for numbers, shape, microseconds in MEASURED_US:
        assert 0.6 < tiles_ns(shape, 1, numbers) / 1e3 / microseconds < 1.6


def test_a_kernel_that_is_quick_in_float32_stays_there() -> None:
    shape = square(14, 256, 256)
    milliseconds = tiles_ns(shape, 1) / 1e6
    assert is_faster(shape, 1, 2 * milliseconds)
    assert not is_faster(shape, 1, 1.05 * milliseconds)


def test_without_a_time_float32_is_taken_at_its_best() -> None:
    assert is_faster(square(14, 256, 256), 1, None)
    assert not is_faster(square(1, 8, 2), 1, None)


# The image of a product in bfloat16, on processors that round to it.

LACKING = lacks_some(("avx512_bf16",))


@pytest.mark.skipif(bool(LACKING), reason=LACKING)
def test_an_image_lies_rounded_inside_of_a_border_of_zeros() -> None:
    kernel = convolution((1, 3, 2, 1), (3, 3, 1, 1), padding=1, stages=False)
    product = present(product_of(kernel.function))
    with IRBuilder() as builder, T.prim_func(s_tir=True):
        T.func_name("main")
        T.arg("image", product.source)
        result = T.arg("result", T.buffer((5 * 4,), "uint16"))
        with T.attr(0, amx.IMPORTED, amx.ROUND):
            rows = TileRows(product, 16, Bfloat16Operands(tile_numbers.BFLOAT16), 1)
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


def test_a_buffer_that_is_used_by_address_alone_keeps_its_size() -> None:
    with IRBuilder() as builder, T.prim_func(s_tir=True):
        T.func_name("main")
        result = T.arg("result", T.buffer((1,), "float32"))
        buffer = whole_buffer(999, "float32")
        T.buffer_store(buffer, tvm.tirx.const(1.0, "float32"), [0])
        T.buffer_store(result, buffer[0], [0])
    assert "999" in tvm.s_tir.transform.CompactBufferAllocation()(_lowered(builder.get())).script()


def _lowered(function: Any) -> Any:
    module = tvm.IRModule({"main": function})
    return tvm.s_tir.transform.PlanAndUpdateBufferAllocationLocation()(module)


def widened(bits: np.ndarray) -> np.ndarray:
    return (bits.astype("uint32") << 16).view("float32")


@given(
    st.floats(
        width=32, allow_nan=False, allow_infinity=False, min_value=-(2.0**120), max_value=2.0**120
    )
)
def test_a_number_is_rounded_to_one_of_its_two_neighbours_in_bfloat16(value: float) -> None:
    exact = np.array([value], "float32")
    (found,) = widened(tile_numbers.bfloat16_bits(exact))
    step = np.spacing(np.abs(exact[0]), dtype="float32") * 2.0**16
    assert abs(float(found) - value) <= step / 2


def test_of_two_equally_near_ones_the_even_is_taken() -> None:
    halfway = np.array([0x3F808000, 0x3F818000], "uint32").view("float32")
    assert tile_numbers.bfloat16_bits(halfway).tolist() == [0x3F80, 0x3F82]


def test_pairs_of_depth_lie_side_by_side_in_tiles_of_columns() -> None:
    extents = Extents(4, 4)
    rows = RowsOfTiles(ProductShape(1, extents, 3, extents, 18, window=Extents(2, 2)))
    weights = np.arange(2 * 2 * 3 * 18, dtype="float32").reshape(2, 2, 3, 18)
    found = widened(tile_numbers.pack_weights(weights, rows)).reshape(2, 2, 1, 16, 16, 2)
    for tap, depth, column in ((0, 0, 0), (1, 5, 17), (0, 3, 16), (1, 2, 15)):
        place = column // 16, tap, 0, depth // 2, column % 16, depth % 2
        wanted = widened(tile_numbers.bfloat16_bits(weights.reshape(2, 6, 18)[tap, depth, column]))
        assert found[place] == wanted[()]
    assert found[1, :, :, :, 2:].any() == np.False_
    assert found[:, :, :, 3:].any() == np.False_


def test_a_column_in_int8_has_its_own_scale_around_0() -> None:
    weights = np.array([[[1.0, -508.0, 0.0], [-2.0, 4.0, 0.0]]], "float32")
    scales, whole = tile_numbers.quantized_columns(weights)
    np.testing.assert_allclose(scales, [2 / 127, 4, 1])
    assert whole.tolist() == [[[64, -127, 0], [-127, 1, 0]]]


def test_behind_weights_in_int8_are_the_sums_and_scales_of_columns() -> None:
    extents = Extents(4, 4)
    rows = RowsOfTiles(ProductShape(1, extents, 70, extents, 18), tile_numbers.INT8.depth)
    weights = np.random.default_rng(1).normal(size=(70, 18)).astype("float32")
    found = tile_numbers.pack_weights(weights, rows, tile_numbers.INT8)
    scales, whole = tile_numbers.quantized_columns(weights.reshape(1, 70, 18))
    assert found.size == tile_numbers.packed_words(rows, tile_numbers.INT8)
    assert tile_numbers.pack_weights(
        weights, RowsOfTiles(rows.shape), tile_numbers.BFLOAT16
    ).size == tile_numbers.packed_words(RowsOfTiles(rows.shape), tile_numbers.BFLOAT16)
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
    rows = RowsOfTiles(ProductShape(1, extents, 1, extents, 1), tile_numbers.INT8.depth)
    operands = Int8Operands(rows, tile_numbers.INT8)
    with IRBuilder() as builder, T.prim_func(s_tir=True):
        T.func_name("main")
        source = T.arg("image", T.buffer((image.size,), "float32"))
        result = T.arg("result", T.buffer((image.size + 3,), "uint8"))
        with T.attr(0, amx.IMPORTED, QUANTIZE):
            operands.measure(source, threads)
            places = T.address_of(source[0]), T.address_of(result[0])
            operands.round_numbers(*places, image.size, image.size + 3)
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
