"""A product without a record keeps its sums in registers, and all its bits stay."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import tvm
from tvm import te, topi

from tunegate.compiler.build.single_kernel import built_kernel
from tunegate.compiler.intrinsics import load_intrinsics
from tunegate.compiler.layouts.packing import ATTRIBUTE
from tunegate.compiler.schedules.product_tiles import with_product_tiles
from tunegate.compiler.schedules.unscheduled import IS_SCHEDULED
from tunegate.compiler.targets import tvm_target
from tunegate.config import TargetConfig

load_intrinsics("llvm")
TARGET = tvm_target(TargetConfig(name="cpu", threads=1)).target
TWO_THREADS = tvm_target(TargetConfig(name="cpu", threads=2)).target
HASWELL = tvm_target(TargetConfig(name="cpu", cpu="haswell", threads=1)).target


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


def module_of(tensors: list[Any], *, constant: bool) -> Any:
    """The tensors as a function; TVM's operators call their weights constants themselves."""
    main = te.create_prim_func(tensors).with_attr("global_symbol", "main").without_attr(ATTRIBUTE)
    return tvm.IRModule({"main": main.with_attr(ATTRIBUTE, [1]) if constant else main})


def computed(module: Any, tensors: list[Any], target: Any = TARGET) -> np.ndarray:
    kernel = built_kernel(module, target)
    random = np.random.default_rng(1)
    given = [
        tvm.runtime.tensor(random.normal(size=[int(n) for n in each.shape]).astype("float32"))
        for each in tensors
    ]
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
    plain = module_of(tensors, constant=constant)
    tiled = with_product_tiles(plain, TARGET)
    assert tiled["main"].attrs[IS_SCHEDULED]
    np.testing.assert_array_equal(computed(tiled, tensors), computed(plain, tensors))


def test_other_registers_have_other_tiles_and_the_same_sums() -> None:
    tensors = convolution(12, 16, 64)
    plain = module_of(tensors, constant=True)
    narrow = with_product_tiles(plain, HASWELL)
    assert "vectorized(8)" in str(narrow)
    np.testing.assert_array_equal(computed(narrow, tensors, HASWELL), computed(plain, tensors))


@pytest.mark.parametrize(("pad", "is_copied"), [(0, False), (1, True)])
def test_an_image_that_is_padded_by_nothing_is_not_copied(pad: int, is_copied: bool) -> None:
    tensors = convolution(12, 16, 64, pad=pad)
    plain = module_of(tensors, constant=True)
    tiled = with_product_tiles(plain, TARGET)
    assert ("pad_temp" in str(tiled)) == is_copied
    np.testing.assert_array_equal(computed(tiled, tensors), computed(plain, tensors))


def test_a_large_one_is_shared_out_to_the_threads() -> None:
    tensors = convolution(16, 16, 32)
    shared = with_product_tiles(module_of(tensors, constant=True), TWO_THREADS)
    assert "T.parallel" in str(shared)
    found = computed(shared, tensors, TWO_THREADS)
    np.testing.assert_array_equal(found, computed(module_of(tensors, constant=True), tensors))


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
    module = module_of(tensors, constant=False)
    assert with_product_tiles(module, TARGET) is module


def test_what_has_a_schedule_and_what_is_left_stay_as_they_are() -> None:
    module = module_of(product(12, 40, 96), constant=True)
    assert with_product_tiles(module, TARGET, leaves={"main"}) is module
    scheduled = tvm.IRModule({"main": module["main"].with_attr(IS_SCHEDULED, True)})
    assert with_product_tiles(scheduled, TARGET) is scheduled
