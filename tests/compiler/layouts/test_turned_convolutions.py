"""Convolutions whose layout is changed one by one, where the compiler cannot do it for all."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import pytest
import tvm
from onnx import TensorProto, helper, numpy_helper
from tvm import relax

from tunegate.compiler.importing.import_onnx import imported
from tunegate.compiler.layouts.layout import channels_last, with_turned_convolutions

SHAPE = (1, 4, 9, 1)
WEIGHTS = {"wide": (8, 4, 3, 1), "grouped": (8, 4, 3, 1), "of-a-channel": (1, 8, 1, 1)}
NODES = [
    helper.make_node("Conv", ["x", "wide"], ["a"], pads=[2, 0, 1, 0], strides=[1, 1]),
    helper.make_node("Add", ["a", "of-a-channel"], ["b"]),
    helper.make_node("Relu", ["b"], ["c"]),
    helper.make_node("Conv", ["c", "grouped"], ["d"], group=2, dilations=[2, 1]),
    helper.make_node("Squeeze", ["d", "last"], ["y"]),
]


def a_text_s_convolutions() -> onnx.ModelProto:
    """Two convolutions along one axis; the other axis is gone in the end."""
    random = np.random.default_rng(1)
    tensors: dict[str, Any] = {
        name: random.normal(0, 0.2, shape).astype("float32") for name, shape in WEIGHTS.items()
    }
    tensors["last"] = np.array([3])
    graph = helper.make_graph(
        NODES,
        "text",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, SHAPE)],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, (1, 8, 6))],
        [numpy_helper.from_array(array, name) for name, array in tensors.items()],
    )
    opset = [helper.make_opsetid("", 17)]
    return helper.make_model(graph, opset_imports=opset, ir_version=8)


def output(module: Any) -> Any:
    x = np.random.default_rng(2).standard_normal(SHAPE).astype("float32")
    machine = relax.VirtualMachine(tvm.compile(module, "llvm"), tvm.cpu())
    return machine["main"](tvm.runtime.tensor(x)).numpy()


def test_convolutions_compute_what_they_did() -> None:
    module = imported(a_text_s_convolutions())
    turned = with_turned_convolutions(module)
    text = str(turned)
    assert text.count('data_layout="NHWC"') == 2
    assert with_turned_convolutions(turned)["main"].script() == turned["main"].script()
    np.testing.assert_allclose(output(turned), output(module), rtol=1e-5)


def test_a_model_whose_layouts_the_compiler_cannot_change_has_its_channels_last_too(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """TVM's change of layouts does so where tensors are stacked."""

    def fail(*_: Any) -> Any:
        raise tvm.error.InternalError("Index -1 out of bounds 3")

    module = imported(a_text_s_convolutions())
    monkeypatch.setattr(relax.transform, "ConvertLayout", fail)
    turned = channels_last(module)
    text = str(turned)
    assert text.count('data_layout="NHWC"') == 2
    assert text.count("axes=[0, 3, 1, 2]") == 1, "the image is turned back once"
    np.testing.assert_allclose(output(turned), output(module), rtol=1e-5)
