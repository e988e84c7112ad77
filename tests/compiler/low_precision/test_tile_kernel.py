"""Kernels beside the compiler's own in float32, on processors that have the tiles."""

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest
import tvm
from hypothesis import given, settings
from hypothesis import strategies as st
from tvm import relax, te, tirx
from tvm.script.ir_builder import IRBuilder
from tvm.tirx.script.builder import ir as T

from tests.compiler.low_precision.product_kernels import Fused, activations, convolution, matrices
from tests.support.present import present
from tunegate.compiler.low_precision import tiles as amx
from tunegate.compiler.low_precision.product import (
    Extents,
    RowsOfTiles,
    blocks_of,
    padding_of,
    product_of,
)
from tunegate.compiler.low_precision.tile_kernel import PAIR, packed_rows, tile_kernel
from tunegate.compiler.low_precision.tile_numbers import (
    BFLOAT16,
    BFLOAT16_VECTORS,
    INT8,
    INT8_VECTORS,
    TileNumbers,
    pack_weights,
)
from tunegate.compiler.schedules.vector_functions import vectorize_elementary_functions
from tunegate.errors import UnsupportedModelError
from tunegate.system.machine.cores import lacks_some

LACKING = lacks_some(BFLOAT16.flags) or lacks_some(INT8.flags)
needs_tiles = pytest.mark.skipif(bool(LACKING), reason=LACKING)
FEATURES = sorted(BFLOAT16.features | INT8.features)
TARGET = tvm.target.Target(
    {"kind": "llvm", "mcpu": "skylake-avx512", "mattr": [f"+{each}" for each in FEATURES]}
)
NO_TILES = {
    "vpdpbusd": tvm.target.Target({"kind": "llvm", "mcpu": "cascadelake"}),
    "vdpbf16ps": tvm.target.Target({"kind": "llvm", "mcpu": "cooperlake"}),
}


def needs(numbers: TileNumbers) -> pytest.MarkDecorator:
    lacking = lacks_some(numbers.flags)
    return pytest.mark.skipif(bool(lacking), reason=lacking)


needs_vectors = needs(INT8_VECTORS)
NEITHER = lacks_some({*BFLOAT16_VECTORS.flags, *INT8_VECTORS.flags})
needs_either = pytest.mark.skipif(bool(NEITHER), reason=NEITHER)
"""Tiles for both precisions, or vectors."""
in_bfloat16 = pytest.mark.parametrize(
    "numbers",
    [
        pytest.param(BFLOAT16, id="tiles", marks=needs_tiles),
        pytest.param(BFLOAT16_VECTORS, id="vectors", marks=needs(BFLOAT16_VECTORS)),
    ],
)
in_int8 = pytest.mark.parametrize(
    "numbers",
    [
        pytest.param(INT8, id="tiles", marks=needs_tiles),
        pytest.param(INT8_VECTORS, id="vectors", marks=needs_vectors),
    ],
)
HALF_A_STEP = 2.0**-9
"""The largest error of one rounding to bfloat16, of the number."""


def computed(
    kernel: Fused, image: np.ndarray, threads: int = 1, numbers: TileNumbers = BFLOAT16
) -> np.ndarray:
    product = present(product_of(kernel.function))
    made = tile_kernel(product, kernel.function, threads, numbers)
    made = made.with_attr("global_symbol", "main")
    arguments = [image if at == 0 else a.value.numpy() for at, a in enumerate(kernel.arguments)]
    rows = RowsOfTiles(product.shape, numbers.depth)
    arguments[product.weights] = pack_weights(arguments[product.weights], rows, numbers)
    return run(made, kernel, arguments, target_for(numbers))


def target_for(numbers: TileNumbers) -> Any:
    return TARGET if numbers.is_tiled else NO_TILES[numbers.multiply]


def run(
    made: Any, kernel: Fused, arguments: Sequence[np.ndarray], target: Any = TARGET
) -> np.ndarray:
    result = np.full([int(n) for n in kernel.function.params[-1].shape], np.nan, "float32")
    tensors = [tvm.runtime.tensor(each) for each in (*arguments, result)]
    tvm.compile(made, target=target)["main"](*tensors)
    found: np.ndarray = tensors[-1].numpy()
    return found


def assert_near(kernel: Fused, image: np.ndarray, **how: Any) -> None:
    """Both factors of each product are off by half a step at most, and sums are exact enough."""
    product = present(product_of(kernel.function))
    weights = kernel.arguments[product.weights].value.numpy()
    largest = math.prod(weights.shape[:-1]) * np.abs(image).max() * np.abs(weights).max()
    expected = kernel.computed(image)
    np.testing.assert_allclose(
        computed(kernel, image, **how), expected, rtol=0, atol=2.1 * HALF_A_STEP * largest
    )


def assert_near_in_int8(
    kernel: Fused, image: np.ndarray, numbers: TileNumbers, threads: int = 1
) -> None:
    """The same with half a step of 255 for the image and of 254 for a column of weights."""
    product = present(product_of(kernel.function))
    weights = kernel.arguments[product.weights].value.numpy()
    depth = math.prod(weights.shape[:-1])
    reach = max(image.max(), 0) - min(image.min(), 0)
    of_image = 0.51 * reach / 255 * np.abs(weights).max()
    of_weights = 0.51 * np.abs(weights).max() / 127 * np.abs(image).max()
    found, expected = computed(kernel, image, threads, numbers), kernel.computed(image)
    atol = depth * (of_image + of_weights) + 1e-6
    np.testing.assert_allclose(found, expected, rtol=0, atol=atol)


def drawn(*shape: int) -> np.ndarray:
    return np.random.default_rng(1).uniform(-1, 1, shape).astype("float32")


def convolution_of(data: st.DataObject, sizes: tuple[int, ...]) -> tuple[Fused, np.ndarray]:
    """A convolution of any extents with channels of these sizes, and an image for it."""
    small, extent = st.integers(1, 3), st.integers(7, 12)
    batch, height, width = data.draw(st.tuples(st.integers(1, 2), extent, extent))
    channels, out = data.draw(st.tuples(*[st.sampled_from(sizes)] * 2))
    window, stride, dilation = data.draw(st.tuples(*[st.tuples(small, small)] * 3))
    padding = data.draw(st.tuples(*[st.integers(0, 2)] * 4))
    shape = (batch, height, width, channels)
    weights = (*window, channels, out)
    kernel = convolution(shape, weights, strides=stride, dilation=dilation, padding=padding)
    return kernel, drawn(*shape)


@in_bfloat16
@settings(max_examples=8, deadline=None)
@given(data=st.data())
def test_a_convolution_of_any_extents_is_off_by_rounding_alone(
    data: st.DataObject, numbers: TileNumbers
) -> None:
    kernel, image = convolution_of(data, (1, 3, 16, 31, 32, 50))
    assert_near(kernel, image, numbers=numbers)


@in_bfloat16
@settings(max_examples=5, deadline=None)
@given(rows=st.integers(1, 70), depth=st.integers(1, 100), columns=st.integers(1, 70))
def test_a_matrix_product_of_any_extents_is_off_by_rounding_alone(
    rows: int, depth: int, columns: int, numbers: TileNumbers
) -> None:
    assert_near(matrices((2, rows), depth, columns), drawn(2, rows, depth), numbers=numbers)


@in_bfloat16
def test_small_whole_numbers_come_out_exactly(numbers: TileNumbers) -> None:
    kernel = convolution((1, 6, 6, 8), (3, 3, 8, 20), padding=1, stages=False)
    image = np.random.default_rng(2).integers(-8, 9, (1, 6, 6, 8)).astype("float32")
    weights = np.random.default_rng(3).integers(-8, 9, (3, 3, 8, 20)).astype("float32")
    exact = kernel.with_weights(weights)
    found = computed(exact, image, numbers=numbers)
    np.testing.assert_array_equal(found, exact.computed(image))


@in_bfloat16
@pytest.mark.parametrize("rows", [3, 200])
def test_threads_share_rows_or_columns(rows: int, numbers: TileNumbers) -> None:
    assert_near(matrices((rows,), 64, 200), drawn(rows, 64), threads=2, numbers=numbers)


@in_bfloat16
def test_a_number_that_is_none_stays_none_where_it_is_read(numbers: TileNumbers) -> None:
    image = drawn(4, 64)
    image[2, 5] = np.nan
    found = computed(matrices((4,), 64, 32), image, numbers=numbers)
    assert np.isnan(found[2]).all()
    assert np.isfinite(found[[0, 1, 3]]).all()


@in_int8
@settings(max_examples=6, deadline=None)
@given(data=st.data())
def test_a_convolution_in_int8_is_off_by_rounding_alone(
    data: st.DataObject, numbers: TileNumbers
) -> None:
    kernel, image = convolution_of(data, (1, 3, 16, 31, 64, 70))
    lowest = data.draw(st.sampled_from((-1.0, 0.0, 0.5, -0.9)))
    assert_near_in_int8(kernel, np.maximum(image, lowest).astype("float32"), numbers)


@in_int8
@pytest.mark.parametrize(("rows", "threads"), [(3, 1), (70, 1), (200, 2)])
def test_a_matrix_product_in_int8_is_off_by_rounding_alone(
    rows: int, threads: int, numbers: TileNumbers
) -> None:
    assert_near_in_int8(matrices((2, rows), 100, 70), drawn(2, rows, 100), numbers, threads)


@in_int8
def test_whole_numbers_of_int8_come_out_exactly(numbers: TileNumbers) -> None:
    kernel = convolution((1, 6, 6, 8), (3, 3, 8, 20), padding=1, stages=False)
    image = np.random.default_rng(2).integers(-100, 156, (1, 6, 6, 8)).astype("float32")
    image[0, 0, 0, :2] = -100, 155
    weights = np.random.default_rng(3).integers(-127, 128, (3, 3, 8, 20)).astype("float32")
    weights[0, 0, 0] = 127
    exact = kernel.with_weights(weights)
    found = computed(exact, image, 1, numbers)
    np.testing.assert_allclose(found, exact.computed(image), rtol=1e-6)


@in_int8
def test_an_image_of_zeros_gives_zeros_in_int8(numbers: TileNumbers) -> None:
    image = np.zeros((4, 64), "float32")
    assert not computed(matrices((4,), 64, 32), image, 1, numbers).any()


@in_bfloat16
@pytest.mark.parametrize(
    ("images", "rows", "depth", "columns", "threads"),
    [((1, 4), 70, 64, 70, 1), ((2, 3), 16, 33, 16, 1), ((5,), 3, 1, 50, 2), ((2,), 40, 31, 5, 2)],
)
def test_two_activations_are_off_by_rounding_alone(
    images: tuple[int, ...], rows: int, depth: int, columns: int, threads: int, numbers: TileNumbers
) -> None:
    kernel = activations(images, rows, depth, columns)
    product = present(product_of(kernel.function))
    given = drawn(*images, rows, depth), drawn(*images, depth, columns)
    made = tile_kernel(product, kernel.function, threads, numbers)
    np.testing.assert_allclose(
        run(made.with_attr("global_symbol", "main"), kernel, given, target_for(numbers)),
        kernel.computed(*given),
        rtol=0,
        atol=2.1 * HALF_A_STEP * depth * 0.125,
    )


@pytest.mark.parametrize("numbers", [BFLOAT16_VECTORS, INT8_VECTORS], ids=["bfloat16", "int8"])
def test_constants_of_an_activation_leave_the_sums_in_registers(numbers: TileNumbers) -> None:
    vectorize_elementary_functions()
    kernel = convolution((1, 28, 28, 64), (3, 3, 64, 64), activation=relax.op.nn.silu, padding=1)
    product = present(product_of(kernel.function))
    made = tile_kernel(product, kernel.function, 1, numbers).with_attr("global_symbol", "main")
    code = tvm.compile(made, target=target_for(numbers)).mod.inspect_source("asm")
    loops = [part for part in code.split("\n.LBB") if numbers.multiply in part]
    assert loops
    for loop in loops:
        assert loop.count("(%rsp)") < loop.count(numbers.multiply) / 4


def test_sums_that_could_overflow_are_not_computed_in_int8() -> None:
    kernel = matrices((1,), INT8.most_products + 1, 1)
    product = present(product_of(kernel.function))
    with pytest.raises(UnsupportedModelError, match="more products than 32 bits hold"):
        tile_kernel(product, kernel.function, 1, INT8)
    assert INT8.most_products * 255 * 127 < 2**31


# A right operand that is packed in an inference lies as weights do that are packed before.


@needs_tiles
@pytest.mark.parametrize(("depth", "columns"), [(32, 16), (33, 20), (5, 3)])
def test_pairs_of_rows_lie_side_by_side(depth: int, columns: int) -> None:
    product = present(product_of(activations((2,), 8, depth, columns).function))
    rows = RowsOfTiles(product.shape)
    right = drawn(2, depth, columns)
    expected = np.concatenate([pack_weights(each, rows) for each in right])
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


HEIGHT, WIDTH = 5, 4


def bordered(
    value: Callable[..., Any], height: int = HEIGHT + 3, width: int = WIDTH + 3
) -> tuple[Any, list[Any], Any]:
    """The image, the blocks of a function that makes a border around it, and what it makes."""
    image = te.placeholder((1, HEIGHT, WIDTH, 3), "float32", "image")
    made = te.compute((1, height, width, 3), lambda *at: value(image, *at), name="made")
    function = te.create_prim_func([image, made])
    return function.params[0], [*blocks_of(function)], function.params[1]


def around(
    border: float = 0.0, end: int = HEIGHT + 1, row: Callable[[Any], Any] = lambda y: y - 1
) -> Callable[..., Any]:
    """An image within a border of this number, read up to this end at these rows."""

    def value(image: Any, n: Any, y: Any, x: Any, c: Any) -> Any:
        inside = tirx.all(y >= 1, y < end, x >= 2, x < WIDTH + 2)
        return tirx.if_then_else(inside, image[n, row(y), x - 2, c], tirx.const(border, "float32"))

    return value


def test_a_border_of_zeros_is_read_and_a_copy_has_none() -> None:
    copied = bordered(lambda image, *at: image[at], HEIGHT, WIDTH)
    for (image, blocks, made), wanted in (
        (bordered(around()), Extents(1, 2)),
        (copied, Extents(0, 0)),
    ):
        found, padding = padding_of(blocks, made)
        assert present(found).same_as(image)
        assert padding == wanted


def test_without_a_block_the_image_is_its_own() -> None:
    image, _, _ = bordered(around())
    assert padding_of([], image) == (image, Extents(0, 0))


@pytest.mark.parametrize(
    "value",
    [around(border=1.0), around(end=HEIGHT), around(row=lambda y: y // 2)],
    ids=["ones around", "less than the image", "twice as far"],
)
def test_anything_else_is_none(value: Callable[..., Any]) -> None:
    _, blocks, made = bordered(value)
    assert padding_of(blocks, made)[0] is None


def test_a_condition_on_numbers_is_no_border() -> None:
    def by_value(image: Any, n: Any, y: Any, x: Any, c: Any) -> Any:
        return tirx.if_then_else(
            image[n, 0, 0, c] > 0, image[n, y, x, c], tirx.const(0.0, "float32")
        )

    _, blocks, made = bordered(by_value)
    with pytest.raises(UnsupportedModelError, match="more than the place"):
        padding_of(blocks, made)
