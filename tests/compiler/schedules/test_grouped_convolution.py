"""A grouped convolution is found where it is one, and nothing else is taken for it."""

from __future__ import annotations

from typing import Any

import pytest
from tvm import te, topi

from tests.support.models.grouped_convolutions import Shape, workload
from tests.support.models.workload_corpus import primitive, workloads
from tunegate.compiler.schedules.grouped_convolutions import Groups, grouped_convolution
from tunegate.compiler.search.workload import canonical_workload


def found_in(function: Any) -> Any:
    return grouped_convolution(canonical_workload(function).module["main"])


@pytest.mark.parametrize(
    "shape",
    [
        Shape(),
        Shape(channels_in=1, channels_out=1),
        Shape(channels_in=1, channels_out=3),
        Shape(window=(1, 1), pads=(0, 0, 0, 0)),
        Shape(stride=2, dilation=2, pads=(0, 1, 2, 2)),
    ],
)
def test_it_is_found_with_its_groups(shape: Shape) -> None:
    found = grouped_convolution(workload(shape).module["main"])
    assert found is not None
    assert found.groups == Groups(shape.groups, shape.channels_in, shape.channels_out)
    assert found.weight_extents[:2] == shape.window


@pytest.mark.parametrize(
    "name",
    [
        "conv2d_nhwc_float32",
        "conv2d_grouped_float32",
        "conv2d_depthwise_float32",
        "conv2d_grouped_nhwc_float16",
        "conv2d_int8",
        "matmul_float32",
        "max_pool_float32",
    ],
)
def test_nothing_else_is_taken_for_it(name: str) -> None:
    assert found_in(primitive(workloads()[name])) is None


def test_weights_of_another_group_are_no_grouped_convolution() -> None:
    image, weights = te.placeholder((1, 5, 5, 8)), te.placeholder((3, 3, 2, 8))
    y, x, c = (te.reduce_axis((0, n)) for n in (3, 3, 2))
    shifted = te.compute(
        (1, 3, 3, 8),
        lambda n, h, w, k: te.sum(
            image[n, h + y, w + x, (7 - k) // 2 * 2 + c] * weights[y, x, c, k], axis=[y, x, c]
        ),
    )
    assert found_in(te.create_prim_func([image, weights, shifted])) is None


def test_of_two_in_a_function_none_is_taken() -> None:
    image, weights = te.placeholder((1, 9, 9, 8)), te.placeholder((3, 3, 2, 8))
    first = topi.nn.group_conv2d_nhwc(image, weights, 1, 1, 1, 4, out_dtype="float32")
    second = topi.nn.group_conv2d_nhwc(first, weights, 1, 1, 1, 4, out_dtype="float32")
    assert found_in(te.create_prim_func([image, weights, second])) is None
