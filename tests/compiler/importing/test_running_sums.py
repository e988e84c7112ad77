"""Running sums for a GPU are steps, each a kernel of its own, and give ONNX Runtime's numbers."""

from pathlib import Path

import numpy as np
import onnx
import pytest
import tvm
from onnx import TensorProto, helper, numpy_helper
from tvm import relax

from tests.compiler.importing.fused_module import fused_module
from tests.support.operator_models import outputs_of

GPU = tvm.target.Target({"kind": "cuda", "arch": "sm_80"})


def running_sum(length: int, dtype: int, exclusive: int, reverse: int) -> onnx.ModelProto:
    """A running sum along the second of three axes, between element-wise operators."""
    nodes = [
        helper.make_node("Mul", ["x", "x"], ["y"]),
        helper.make_node("CumSum", ["y", "axis"], ["c"], exclusive=exclusive, reverse=reverse),
        helper.make_node("Add", ["c", "y"], ["z"]),
    ]
    x, z = (helper.make_tensor_value_info(name, dtype, (2, length, 3)) for name in "xz")
    axis = numpy_helper.from_array(np.array(-2), "axis")
    graph = helper.make_graph(nodes, "g", [x], [z], [axis])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=9)


@pytest.mark.parametrize(
    ("length", "dtype", "exclusive", "reverse", "kernels"),
    [
        (1, TensorProto.FLOAT, 0, 0, 0),
        (7, TensorProto.FLOAT, 0, 0, 3),
        (128, TensorProto.INT64, 1, 0, 8),
        (100, TensorProto.INT32, 0, 1, 7),
        (33, TensorProto.FLOAT, 1, 1, 7),
    ],
)
def test_a_running_sum_takes_a_kernel_for_each_doubling(
    length: int, dtype: int, exclusive: int, reverse: int, kernels: int, tmp_path: Path
) -> None:
    model = running_sum(length, dtype, exclusive, reverse)
    module = fused_module(model, tmp_path, GPU)
    names = [variable.name_hint for variable in module.functions]
    assert sum(name.startswith(("running_sum", "exclusive_sum")) for name in names) == kernels
    x = (3 * np.random.default_rng(0).standard_normal((2, length, 3))).astype(
        helper.tensor_dtype_to_np_dtype(dtype)
    )
    # No thread is bound yet, so a CPU computes the same kernels.
    machine = relax.VirtualMachine(relax.build(module, target="llvm"), tvm.cpu())
    (expected,) = outputs_of(model, {"x": x})
    actual = machine["main"](tvm.runtime.tensor(x)).numpy()
    np.testing.assert_allclose(actual, expected, rtol=1e-5, atol=1e-5)
