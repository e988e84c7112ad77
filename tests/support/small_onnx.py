"""Small ONNX models with seeded weights, for tests that compile."""

from pathlib import Path

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

OPSET = 17


def conv_model(
    *,
    seed: int = 0,
    channels: int = 8,
    out: int = 8,
    size: int = 8,
    name: str = "conv",
    scale: float = 1.0,
) -> onnx.ModelProto:
    """A model of a 3x3 convolution with a bias, and Relu."""
    random = np.random.default_rng(seed)
    weight = (random.standard_normal((out, channels, 3, 3)) * scale).astype(np.float32)
    bias = random.standard_normal(out).astype(np.float32)
    nodes = [
        helper.make_node("Conv", ["x", "w", "b"], ["c"], name=name, pads=[1, 1, 1, 1]),
        helper.make_node("Relu", ["c"], ["y"], name=f"{name}_relu"),
    ]
    return _model(
        nodes,
        inputs={"x": [1, channels, size, size]},
        outputs={"y": [1, out, size, size]},
        initializers={"w": weight, "b": bias},
    )


def matmul_model(
    *, seed: int = 0, rows: int | str = 16, inner: int = 16, columns: int = 16
) -> onnx.ModelProto:
    """A model of a product with a weight; `rows` may be a symbol."""
    weight = np.random.default_rng(seed).standard_normal((inner, columns)).astype(np.float32)
    node = helper.make_node("MatMul", ["x", "w"], ["y"], name="product")
    return _model(
        [node],
        inputs={"x": [rows, inner]},
        outputs={"y": [rows, columns]},
        initializers={"w": weight},
    )


def chain_model(*, layers: int, width: int, rows: int = 4) -> onnx.ModelProto:
    """A model of `layers` products with a weight, one after the other."""
    random = np.random.default_rng(0)
    weights = {
        f"w{n}": random.standard_normal((width, width)).astype(np.float32) for n in range(layers)
    }
    names = ["x", *(f"h{n}" for n in range(1, layers)), "y"]
    nodes = [
        helper.make_node("MatMul", [names[n], f"w{n}"], [names[n + 1]], name=f"product{n}")
        for n in range(layers)
    ]
    shape: list[int | str] = [rows, width]
    return _model(nodes, inputs={"x": shape}, outputs={"y": shape}, initializers=weights)


def one_node_model(op_type: str) -> onnx.ModelProto:
    """A model of one operator on [4, 4] floats."""
    node = helper.make_node(op_type, ["x"], ["y"], name="odd")
    return _model([node], inputs={"x": [4, 4]}, outputs={"y": [4, 4]}, initializers={})


def save(model: onnx.ModelProto, path: Path) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    onnx.save(model, path)
    return path


def _model(
    nodes: list[onnx.NodeProto],
    *,
    inputs: dict[str, list[int | str]] | dict[str, list[int]],
    outputs: dict[str, list[int | str]] | dict[str, list[int]],
    initializers: dict[str, np.ndarray],
) -> onnx.ModelProto:
    graph = helper.make_graph(
        nodes,
        "g",
        [helper.make_tensor_value_info(n, TensorProto.FLOAT, s) for n, s in inputs.items()],
        [helper.make_tensor_value_info(n, TensorProto.FLOAT, s) for n, s in outputs.items()],
        [numpy_helper.from_array(a, n) for n, a in initializers.items()],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", OPSET)], ir_version=8)
