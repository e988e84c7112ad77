"""Small ONNX models with seeded weights, for tests that compile."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

OPSET = 17

typed = helper.make_tensor_type_proto


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
    return model_of(
        nodes,
        inputs={"x": [1, channels, size, size]},
        outputs={"y": [1, out, size, size]},
        weights={"w": weight, "b": bias},
    )


def matmul_model(
    *, seed: int = 0, rows: int | str = 16, inner: int = 16, columns: int = 16
) -> onnx.ModelProto:
    """A model of a product with a weight; `rows` may be a symbol."""
    weight = np.random.default_rng(seed).standard_normal((inner, columns)).astype(np.float32)
    node = helper.make_node("MatMul", ["x", "w"], ["y"], name="product")
    return model_of(
        [node], inputs={"x": [rows, inner]}, outputs={"y": [rows, columns]}, weights={"w": weight}
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
    return model_of(nodes, inputs={"x": shape}, outputs={"y": shape}, weights=weights)


def one_node_model(op_type: str) -> onnx.ModelProto:
    """A model of one operator on [4, 4] floats."""
    node = helper.make_node(op_type, ["x"], ["y"], name="odd")
    return model_of([node], inputs={"x": [4, 4]}, outputs={"y": [4, 4]})


def model_of(
    nodes: Sequence[onnx.NodeProto],
    inputs: Mapping[str, Any],
    outputs: Mapping[str, Any],
    weights: Mapping[str, Any] | Sequence[TensorProto] = {},
    *,
    opset: int = OPSET,
) -> onnx.ModelProto:
    """A model of ONNX's own operators. Inputs and outputs are given with their shape, and those
    that are not of floats as `typed` makes it of their type and shape."""
    return helper.make_model(
        part_of(nodes, inputs, outputs, weights),
        opset_imports=[helper.make_opsetid("", opset)],
        ir_version=8 if opset <= OPSET else 10,
    )


def part_of(
    nodes: Sequence[onnx.NodeProto],
    inputs: Mapping[str, Any] = {},
    outputs: Mapping[str, Any] = {},
    weights: Mapping[str, Any] | Sequence[TensorProto] = {},
) -> onnx.GraphProto:
    """The graph of a model, or that of a branch or a loop of one."""
    tensors = (
        [numpy_helper.from_array(np.asarray(array), name) for name, array in weights.items()]
        if isinstance(weights, Mapping)
        else weights
    )
    return helper.make_graph(list(nodes), "g", _values(inputs), _values(outputs), tensors)


def _values(tensors: Mapping[str, Any]) -> list[onnx.ValueInfoProto]:
    return [
        helper.make_value_info(
            name, said if isinstance(said, onnx.TypeProto) else typed(TensorProto.FLOAT, said)
        )
        for name, said in tensors.items()
    ]


def save(model: onnx.ModelProto, path: Path) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    onnx.save(model, path)
    return path
