from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import pytest
import tvm
from onnx import TensorProto, helper, numpy_helper
from tvm import relax
from tvm.relax.frontend.onnx import from_onnx

from tunegate.compiler.layouts.layout import with_plain_clips

X = np.array([-2.0, -0.0, 0.5, 7.0, np.inf, np.nan], "float32")


def clip(*bounds: float | None) -> Any:
    """ONNX's Clip with its constant bounds, as TVM imports it."""
    names = [name if bound is not None else "" for name, bound in zip("lh", bounds, strict=False)]
    graph = helper.make_graph(
        [helper.make_node("Clip", ["x", *names], ["y"])],
        "g",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, X.shape)],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, X.shape)],
        [
            numpy_helper.from_array(np.array(bound, "float32"), name)
            for name, bound in zip("lh", bounds, strict=False)
            if bound is not None
        ],
    )
    return from_onnx(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)]))


def outputs(module: Any) -> Any:
    machine = relax.VirtualMachine(tvm.compile(module, "llvm"), tvm.cpu())
    return machine["main"](tvm.runtime.tensor(X)).numpy()


@pytest.mark.parametrize("bounds", [(0.0, 6.0), (0.0,), (None, 0.5), (float("nan"), 1.0)])
def test_bounds_that_are_numbers_are_operators_and_the_numbers_stay(
    bounds: tuple[float | None, ...],
) -> None:
    module = clip(*bounds)
    changed = with_plain_clips(module)
    assert "call_tir" in str(module["main"])
    assert "call_tir" not in str(changed["main"])
    np.testing.assert_array_equal(outputs(changed), outputs(module))


def test_a_bound_that_is_an_input_stays_a_kernel() -> None:
    value = helper.make_tensor_value_info
    graph = helper.make_graph(
        [helper.make_node("Clip", ["x", "low"], ["y"])],
        "g",
        [value("x", TensorProto.FLOAT, X.shape), value("low", TensorProto.FLOAT, ())],
        [value("y", TensorProto.FLOAT, X.shape)],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)])
    onnx.checker.check_model(model)
    assert "call_tir" in str(with_plain_clips(from_onnx(model))["main"])
