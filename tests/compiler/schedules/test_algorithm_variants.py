"""Which forms a function has, and which of them are searched first."""

from __future__ import annotations

from typing import Any

import pytest
import tvm

from tests.compiler.schedules.test_product_tiles import (
    batched,
    convolution,
    product,
    turned,
)
from tests.compiler.schedules.test_product_tiles import (
    module_of as product_tiles_module_of,
)
from tests.support.models.grouped_convolutions import Shape, workload
from tests.support.models.workload_corpus import primitive, workloads
from tunegate.compiler.intrinsics import load_intrinsics
from tunegate.compiler.schedules.algorithm_variants import (
    ASKED_FOR,
    DIRECT,
    GROUP_VECTORS,
    IM2COL,
    variants_of,
)
from tunegate.compiler.schedules.product_tiles import TwoFactors, two_factors
from tunegate.compiler.search.workload import canonical_workload

load_intrinsics("llvm")


def module_of(name: str) -> Any:
    return canonical_workload(primitive(workloads()[name])).module


def test_a_gpu_has_the_direct_form_only() -> None:
    assert len(variants_of(module_of("conv2d_3x3_float32"), "cuda")) == 1
    assert len(variants_of(workload(Shape()).module, "cuda")) == 1


def test_a_convolution_of_small_groups_is_seldom_fastest_as_it_is_written() -> None:
    direct, vectors = variants_of(workload(Shape()).module, "llvm")
    assert (direct.name, direct.is_seldom_best, direct.lanes) == (DIRECT, True, 1)
    assert (vectors.name, vectors.is_seldom_best, vectors.lanes) == (GROUP_VECTORS, False, 16)


def test_a_depthwise_convolution_may_be_fastest_in_either_form() -> None:
    depthwise = workload(Shape(groups=32, channels_in=1, channels_out=1)).module
    assert not any(each.is_seldom_best for each in variants_of(depthwise, "llvm"))


def test_a_plain_convolution_is_seldom_fastest_as_a_product() -> None:
    direct, product = variants_of(module_of("conv2d_nhwc_float32"), "llvm")
    assert (direct.is_seldom_best, product.name, product.is_seldom_best) == (False, IM2COL, True)


def test_what_has_no_window_and_no_groups_has_one_form() -> None:
    for name in ("matmul_float32", "softmax_float32", "conv2d_depthwise_float32"):
        assert [each.name for each in variants_of(module_of(name), "llvm")] == [DIRECT]


def test_a_form_that_is_asked_for_is_the_only_one_and_is_sampled_as_often_as_any() -> None:
    for name in (DIRECT, IM2COL):
        module = module_of("conv2d_nhwc_float32")
        module.update_func(module.get_global_var("main"), module["main"].with_attr(ASKED_FOR, name))
        (found,) = variants_of(module, "llvm")
        assert (found.name, found.is_seldom_best) == (name, False)


def found_in(tensors: list[Any], *, constant: bool = True) -> TwoFactors | None:
    schedule = tvm.s_tir.Schedule(product_tiles_module_of(tensors, constant=constant))
    blocks = schedule.get_child_blocks(schedule.get_sblock("root"))
    (block,) = (each for each in blocks if schedule.get(each).init is not None)
    return two_factors(schedule, block)


@pytest.mark.parametrize(
    ("tensors", "extents", "axes", "last_axis"),
    [
        (convolution(8, 16, 32), [1, 8, 8, 32], [0, 1, 2], 3),
        (product(12, 40, 96), [12, 96], [0], 1),
        (turned(12, 40, 96), [12, 96], [0], 0),
        (batched(3, 10, 24, 32), [3, 10, 32], [1], 2),
    ],
)
def test_it_knows_where_the_weights_are_the_same(
    tensors: list[Any], extents: list[int], axes: list[int], last_axis: int
) -> None:
    found = found_in(tensors)
    assert found is not None
    assert (found.extents, found.axes, found.last_axis) == (extents, axes, last_axis)
    assert (found.second, found.constant) == (1, True)


def test_weights_that_are_no_constant_must_lie_side_by_side() -> None:
    assert found_in(turned(12, 40, 96), constant=False) is None
    assert found_in(product(12, 40, 96), constant=False) is not None


def test_short_sums_are_none() -> None:
    assert found_in(product(12, 3, 96)) is None
