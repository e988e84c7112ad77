"""The product of an unfolded image computes what the convolution does, whatever its schedule."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pytest
import tvm
from tvm import te, topi
from tvm.driver import build
from tvm.s_tir import meta_schedule as ms

from tests.support.models.workload_corpus import primitive, workloads
from tunegate.compiler.intrinsics import load_intrinsics
from tunegate.compiler.schedules.algorithm_variants import DIRECT, IM2COL, variants_of
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


def test_an_unfolded_image_that_no_cache_holds_is_not_made() -> None:
    image, weights = te.placeholder((1, 224, 224, 64)), te.placeholder((3, 3, 64, 64))
    output = topi.nn.conv2d_nhwc(image, weights, 1, 1, 1, out_dtype="float32")
    large = canonical_workload(te.create_prim_func([image, weights, output])).module
    assert len(variants_of(large, "llvm")) == 1


def test_schedules_of_the_product_are_in_the_space_and_compute_the_same() -> None:
    workload = canonical_workload(primitive(workloads()["conv2d_nhwc_float32"]))
    space = DesignSpace(workload, TARGET)
    names = {digest: template.variant.name for digest, template in space.templates.items()}
    assert set(names.values()) == {DIRECT, IM2COL}
    expected = computed(workload.module)
    seen = set()
    for schedule in space.sample(12, random.Random(5)):
        found = space.describe(schedule.trace)
        assert found is not None
        seen.add(names[found.template])
        again = space.replay(found)
        assert again is not None
        assert np.array_equal(computed(again.mod), expected)
    assert seen == {DIRECT, IM2COL}


def test_a_schedule_of_the_product_moves_to_another_shape() -> None:
    source, here = (
        DesignSpace(canonical_workload(primitive(workloads()[name])), TARGET)
        for name in ("conv2d_3x3_float32", "conv2d_3x3_stride2_float32")
    )
    products = {d for d, t in source.templates.items() if t.variant.name == IM2COL}
    assert products
    assert products <= set(here.templates)
