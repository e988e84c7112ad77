from typing import Any

import numpy as np
import pytest
import tvm
from hypothesis import given, settings
from hypothesis import strategies as st
from tvm import te, tirx

from tests.compiler.low_precision.product_kernels import activations, convolution, matrices
from tunegate.compiler.low_precision import tile_numbers
from tunegate.compiler.low_precision.expressions import rewritten
from tunegate.compiler.low_precision.product import (
    DEPTH,
    Extents,
    ProductShape,
    RowsOfTiles,
    product_of,
)
from tunegate.compiler.low_precision.vector_products import VectorProducts
from tunegate.errors import UnsupportedModelError


def test_a_convolution_with_a_border_a_bias_and_a_relu_is_read() -> None:
    kernel = convolution((2, 9, 7, 5), (3, 2, 5, 4), strides=(2, 1), padding=(1, 1, 1, 0))
    found = product_of(kernel.function)
    assert found is not None
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
    found = product_of(kernel.function)
    assert found is not None
    assert found.shape == ProductShape(6, Extents(8, 1), 5, Extents(8, 1), 6)
    assert found.row_extents == (2, 3, 8)
    assert found.right.same_as(kernel.function.params[1])
    assert len(found.stages) == 1


def test_operations_are_counted() -> None:
    found = product_of(convolution((1, 4, 4, 8), (3, 3, 8, 2), padding=1).function)
    assert found is not None
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
    lowered = function.with_body(tvm.tirx.Evaluate(tvm.tirx.const(0)))
    assert product_of(lowered) is None


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
    number = tirx.Cast("float32", x)
    before = tirx.Select(
        tirx.Not(x < 3), tirx.exp(buffer[x] * number), tirx.max(buffer[x + 1], tirx.const(0.0))
    )
    number = tirx.Cast("float32", y)
    after = tirx.Select(
        tirx.Not(y < 3), tirx.exp(buffer[y] * number), tirx.max(buffer[y + 1], tirx.const(0.0))
    )
    tvm.ir.assert_structural_equal(rewritten(before, {x: y}, load), after)


def test_an_expression_of_another_kind_is_refused() -> None:
    x = tirx.Var("x", "int64")
    with pytest.raises(UnsupportedModelError, match="Ramp"):
        rewritten(tirx.Ramp(x, 1, 4), {}, load)
