"""The product of an unfolded image computes what the convolution does, whatever its schedule."""

from __future__ import annotations

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
from tunegate.compiler.intrinsics import load_intrinsics
from tunegate.compiler.schedules.algorithm_variants import DIRECT, IM2COL, variants_of
from tunegate.compiler.schedules.default_schedule import with_split_choices
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


SPLIT_CONCATENATIONS_TARGET = tvm.target.Target({"kind": "llvm", "mcpu": "haswell"})
ROWS = 3


def concatenation(*widths: int, axis: int = 1) -> Any:
    shapes = [(ROWS, width) if axis else (width, ROWS) for width in widths]
    inputs = [te.placeholder(s, "float32", f"x{i}") for i, s in enumerate(shapes)]
    whole = (ROWS, sum(widths)) if axis else (sum(widths), ROWS)
    starts = [0, *itertools.accumulate(widths[:-1])]

    def chosen(*place: Any) -> Any:
        before, at, behind = place[:axis], place[axis], place[axis + 1 :]
        first, *others = (
            each(*before, at - start, *behind) for each, start in zip(inputs, starts, strict=True)
        )
        value = first
        for other, start in zip(others, starts[1:], strict=True):
            value = te.if_then_else(at >= start, other, value)
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


def test_a_block_that_follows_another_is_split_too() -> None:
    x, y = (te.placeholder((ROWS, 32), "float32", name) for name in "xy")
    joined = te.compute(
        (ROWS, 64), lambda i, j: te.if_then_else(j < 32, x[i, j], y[i, j - 32]), "joined"
    )
    turned = te.compute(
        (ROWS, 64), lambda i, j: te.if_then_else(j < 16, joined[i, j], -joined[i, j]), "turned"
    )
    schedule = tvm.s_tir.Schedule(with_split_choices(module([x, y], turned)))
    found = [schedule.get_loops(schedule.get_sblock(name)) for name in ("joined", "turned")]
    extents = [[int(schedule.get(loop).extent) for loop in loops] for loops in found]
    assert extents == [[ROWS, 2, 32], [ROWS, 4, 16]]


def test_along_another_axis_nothing_is_split() -> None:
    plain = concatenation(64, 192, axis=0)
    assert with_split_choices(plain) is plain


@pytest.mark.parametrize("widths", [(3, 64), (2, 2), (5,)])
def test_a_few_numbers_in_a_row_are_not_worth_a_loop(widths: tuple[int, ...]) -> None:
    plain = concatenation(*widths)
    assert with_split_choices(plain) is plain


def test_what_has_a_schedule_is_left_alone() -> None:
    plain = concatenation(64, 192)
    plain["main"] = plain["main"].with_attr("tirx.is_scheduled", True)
    assert with_split_choices(plain) is plain


def test_a_module_that_is_given_stays_as_it_is() -> None:
    plain = concatenation(64, 192)
    before = str(plain)
    with_split_choices(plain)
    assert str(plain) == before


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
