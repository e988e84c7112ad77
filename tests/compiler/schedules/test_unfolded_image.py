"""The product of an unfolded image computes what the convolution does, whatever its schedule."""

import itertools
import random
from typing import Any

import numpy as np
import pytest
import tvm
from hypothesis import given, settings
from hypothesis import strategies as st
from tvm import te, topi
from tvm.driver import build
from tvm.s_tir import meta_schedule as ms

from tests.support.models.workload_corpus import primitive, workloads
from tests.support.present import present
from tunegate.compiler.build.single_kernel import built_kernel
from tunegate.compiler.intrinsics import load_intrinsics
from tunegate.compiler.layouts.packing import ATTRIBUTE
from tunegate.compiler.schedules.algorithm_variants import DIRECT, IM2COL, variants_of
from tunegate.compiler.schedules.default_schedule import with_split_choices
from tunegate.compiler.schedules.product_tiles import with_product_tiles
from tunegate.compiler.schedules.unscheduled import IS_SCHEDULED
from tunegate.compiler.search.space import DesignSpace
from tunegate.compiler.search.workload import canonical_workload
from tunegate.compiler.targets import tvm_target
from tunegate.config import TargetConfig

load_intrinsics("llvm")
TARGET = tvm_target(TargetConfig(name="cpu", threads=1)).target
UNFOLDED = (
    "conv2d_3x3_float32",
    "conv2d_3x3_stride2_float32",
    "conv2d_3x3_dilated_float32",
    "conv2d_5x5_float32",
    "conv2d_7x7_stride2_float32",
    "conv2d_batch8_float32",
    "conv2d_bias_relu_float32",
    "conv2d_nhwc_float32",
    "conv2d_int8",
)
NOT_UNFOLDED = (
    "conv2d_1x1_float32",
    "conv2d_grouped_float32",
    "conv2d_depthwise_float32",
    "conv1d_float32",
    "conv3d_float32",
    "matmul_int8",
)


def module_of(name: str) -> Any:
    return canonical_workload(primitive(workloads()[name])).module


def computed(module: Any) -> Any:
    """Its output for the same inputs every time."""
    function = build(module, target=TARGET)
    random_values = np.random.default_rng(7)
    arguments = [
        tvm.runtime.tensor(
            random_values.integers(-4, 5, [int(n) for n in a.shape]).astype(str(a.dtype))
        )
        for a in ms.arg_info.ArgInfo.from_prim_func(module["main"])
    ]
    function["main"](*arguments)
    return arguments[-1].numpy()


@pytest.mark.parametrize("name", UNFOLDED)
def test_a_window_is_unfolded_and_computes_the_same(name: str) -> None:
    direct, product = variants_of(module_of(name), "llvm")
    assert (direct.name, product.name) == (DIRECT, IM2COL)
    assert np.array_equal(computed(product.module), computed(direct.module))


@pytest.mark.parametrize("name", NOT_UNFOLDED)
def test_what_is_no_plain_convolution_with_a_window_has_one_form(name: str) -> None:
    assert [variant.name for variant in variants_of(module_of(name), "llvm")] == [DIRECT]


def gated_convolution(size: int, channels: int) -> Any:
    """A convolution whose sums are read twice, as SiLU reads them."""
    image = te.placeholder((1, size, size, channels))
    weights = te.placeholder((3, 3, channels, channels))
    sums = topi.nn.conv2d_nhwc(image, weights, 1, 1, 1, out_dtype="float32")
    output = topi.multiply(sums, topi.nn.relu(sums))
    return canonical_workload(te.create_prim_func([image, weights, output])).module


def test_a_convolution_whose_sums_are_read_twice_is_unfolded() -> None:
    direct, product = variants_of(gated_convolution(8, 4), "llvm")
    assert np.array_equal(computed(product.module), computed(direct.module))


def test_an_unfolded_image_that_no_cache_holds_is_not_made() -> None:
    assert len(variants_of(gated_convolution(224, 64), "llvm")) == 1


def test_schedules_of_the_product_are_in_the_space_and_compute_the_same() -> None:
    workload = canonical_workload(primitive(workloads()["conv2d_nhwc_float32"]))
    space = DesignSpace(workload, TARGET)
    names = {digest: template.variant.name for digest, template in space.templates.items()}
    assert set(names.values()) == {DIRECT, IM2COL}
    expected = computed(workload.module)
    seen = set()
    for schedule in space.sample(12, random.Random(5)):
        found = present(space.describe(schedule.trace))
        seen.add(names[found.template])
        assert np.array_equal(computed(present(space.replay(found)).mod), expected)
    assert seen == {DIRECT, IM2COL}


def test_a_schedule_of_the_product_moves_to_another_shape() -> None:
    source, here = (
        DesignSpace(canonical_workload(primitive(workloads()[name])), TARGET)
        for name in ("conv2d_3x3_float32", "conv2d_3x3_stride2_float32")
    )
    products = {d for d, t in source.templates.items() if t.variant.name == IM2COL}
    assert products
    assert products <= set(here.templates)


SPLIT_CONCATENATIONS_TARGET = tvm.target.Target({"kind": "llvm", "mcpu": "haswell"})
ROWS = 3


def concatenation(*widths: int, axis: int = 1) -> Any:
    shapes = [(ROWS, width) if axis else (width, ROWS) for width in widths]
    inputs = [te.placeholder(s, "float32", f"x{i}") for i, s in enumerate(shapes)]
    whole = (ROWS, sum(widths)) if axis else (sum(widths), ROWS)
    starts = [0, *itertools.accumulate(widths[:-1])]

    def chosen(*place: Any) -> Any:
        before, at, behind = place[:axis], place[axis], place[axis + 1 :]
        value = inputs[0](*place)
        for each, start in zip(inputs[1:], starts[1:], strict=True):
            value = te.if_then_else(at >= start, each(*before, at - start, *behind), value)
        return value

    return module(inputs, te.compute(whole, chosen, "joined"))


def module(inputs: list[Any], output: Any) -> Any:
    main = te.create_prim_func([*inputs, output]).with_attr("global_symbol", "main")
    return tvm.IRModule({"main": main})


def loops(of: Any) -> list[int]:
    schedule = tvm.s_tir.Schedule(of)
    (block,) = schedule.get_child_blocks(schedule.get_sblock("root"))
    return [int(schedule.get(loop).extent) for loop in schedule.get_loops(block)]


def test_a_concatenation_is_split_where_its_inputs_meet() -> None:
    assert loops(with_split_choices(concatenation(64, 192))) == [ROWS, 4, 64]
    assert loops(with_split_choices(concatenation(24, 40, 16))) == [ROWS, 10, 8]


def test_a_sum_over_a_padded_row_is_left_alone() -> None:
    x = te.placeholder((ROWS, 64), "float32", "x")
    k = te.reduce_axis((0, 128), "k")
    inside = te.compute((ROWS,), lambda i: te.sum(te.if_then_else(k < 64, x[i, k], 0.0), axis=k))
    plain = module([x], inside)
    assert with_split_choices(plain) is plain


@settings(max_examples=10, deadline=None)
@given(st.lists(st.sampled_from([1, 4, 12, 16, 24]), min_size=1, max_size=4))
def test_every_number_stays_in_its_place(widths: list[int]) -> None:
    rng = np.random.default_rng(0)
    inputs = [rng.normal(size=(ROWS, width)).astype("float32") for width in widths]
    kernel = tvm.driver.build(
        with_split_choices(concatenation(*widths)), target=SPLIT_CONCATENATIONS_TARGET
    )
    out = tvm.runtime.empty((ROWS, sum(widths)), "float32")
    kernel["main"](*map(tvm.runtime.tensor, inputs), out)
    np.testing.assert_array_equal(out.numpy(), np.concatenate(inputs, axis=1))


# A product without a record keeps its sums in registers, and all its bits stay.

TWO_THREADS = tvm_target(TargetConfig(name="cpu", threads=2)).target


def convolution(width: int, channels: int, out: int, stride: int = 1, pad: int = 1) -> list[Any]:
    x = te.placeholder((1, width, width, channels), "float32", "x")
    w = te.placeholder((3, 3, channels, out), "float32", "w")
    b = te.placeholder((1, 1, 1, out), "float32", "b")
    y = topi.nn.conv2d(x, w, stride, pad, 1, data_layout="NHWC", kernel_layout="HWIO")
    return [x, w, b, topi.nn.relu(topi.add(y, b))]


def product(rows: int, inner: int, columns: int) -> list[Any]:
    x, w = te.placeholder((rows, inner), "float32", "x"), te.placeholder((inner, columns), name="w")
    return [x, w, topi.nn.matmul(x, w)]


def turned(rows: int, inner: int, columns: int) -> list[Any]:
    x, w = te.placeholder((rows, inner), "float32", "x"), te.placeholder((columns, inner), name="w")
    return [x, w, topi.nn.matmul(x, w, transpose_b=True)]


def batched(batch: int, rows: int, inner: int, columns: int) -> list[Any]:
    x = te.placeholder((batch, rows, inner), "float32", "x")
    y = te.placeholder((batch, inner, columns), "float32", "y")
    return [x, y, topi.nn.batch_matmul(x, y, transpose_b=False)]


def product_tiles_module_of(tensors: list[Any], *, constant: bool = True) -> Any:
    """The tensors as a function; TVM's operators call their weights constants themselves."""
    main = te.create_prim_func(tensors).with_attr("global_symbol", "main").without_attr(ATTRIBUTE)
    return tvm.IRModule({"main": main.with_attr(ATTRIBUTE, [1]) if constant else main})


def product_tiles_computed(
    module: Any, tensors: list[Any], target: Any = TARGET, *, pixel: float | None = None
) -> np.ndarray:
    """The last tensor for the same numbers every time; of an image, one pixel may be another."""
    kernel = built_kernel(module, target)
    random = np.random.default_rng(1)
    arrays = [random.normal(size=[int(n) for n in e.shape]).astype("float32") for e in tensors]
    if pixel is not None:
        arrays[0][0, 4, 4, 0] = pixel
    given = [*map(tvm.runtime.tensor, arrays)]
    kernel.function["main"](*kernel.arguments(given))
    found: np.ndarray = given[-1].numpy()
    return found


CASES = [
    (convolution(8, 16, 32), True),
    (convolution(7, 8, 64, stride=2), True),
    (convolution(9, 5, 48, pad=0), False),
    (product(12, 40, 96), True),
    (product(1, 17, 32), False),
    (product(61, 9, 16), True),
    (turned(12, 20, 32), True),
    (batched(3, 10, 24, 32), False),
]


@pytest.mark.parametrize(("tensors", "constant"), CASES)
def test_sums_are_those_of_the_function_to_the_last_bit(tensors: list[Any], constant: bool) -> None:
    plain = product_tiles_module_of(tensors, constant=constant)
    tiled = with_product_tiles(plain, TARGET)
    assert tiled["main"].attrs[IS_SCHEDULED]
    np.testing.assert_array_equal(
        product_tiles_computed(tiled, tensors), product_tiles_computed(plain, tensors)
    )


@pytest.mark.parametrize(("pad", "is_copied"), [(0, False), (1, True)])
def test_an_image_that_is_padded_by_nothing_is_not_copied(pad: int, is_copied: bool) -> None:
    tensors = convolution(12, 16, 64, pad=pad)
    plain = product_tiles_module_of(tensors)
    tiled = with_product_tiles(plain, TARGET)
    assert ("pad_temp" in str(tiled)) == is_copied
    np.testing.assert_array_equal(
        product_tiles_computed(tiled, tensors), product_tiles_computed(plain, tensors)
    )


def test_a_large_one_is_shared_out_to_the_threads() -> None:
    tensors = convolution(16, 16, 32)
    plain = product_tiles_module_of(tensors)
    shared = with_product_tiles(plain, TWO_THREADS)
    assert "T.parallel" in str(shared)
    found = product_tiles_computed(shared, tensors, TWO_THREADS)
    np.testing.assert_array_equal(found, product_tiles_computed(plain, tensors))


@pytest.mark.parametrize(
    "tensors",
    [
        product(8, 40, 12),
        product(8, 2, 64),
        turned(8, 40, 64),
        [x := te.placeholder((8, 64), "float32", "x"), topi.nn.relu(x)],
        [x := te.placeholder((4, 20, 32), "float32", "x"), topi.sum(x, 1)],
    ],
    ids=["no register filled", "short sums", "turned, not constant", "no sum", "one factor"],
)
def test_what_it_cannot_tile_stays_as_it_is(tensors: list[Any]) -> None:
    module = product_tiles_module_of(tensors, constant=False)
    assert with_product_tiles(module, TARGET) is module
