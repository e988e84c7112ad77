from __future__ import annotations

from typing import Any

import pytest
import tvm
from tvm import te

from tests.compiler.low_precision.product_kernels import activations, convolution, matrices
from tunegate.compiler.low_precision.product import Extents, ProductShape, product_of


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


def test_a_matrix_product_has_a_row_for_each_of_its_first_dimensions() -> None:
    found = product_of(matrices((2, 3), 8, 6).function)
    assert found is not None
    assert found.shape == ProductShape(1, Extents(6, 1), 8, Extents(6, 1), 6)
    assert found.row_extents == (2, 3)


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
