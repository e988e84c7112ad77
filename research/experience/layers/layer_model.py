"""A layer as a model of its own, with weights of a seed."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

from research.experience.layers.layer import ModelLayer, Sizes

_OPSET, _IR = 17, 8
_SEED = 1


class _Parts:
    """The nodes and weights of the model so far; `value` is what the next node reads."""

    def __init__(self) -> None:
        self.nodes: list[onnx.NodeProto] = []
        self.weights: list[onnx.TensorProto] = []
        self.inputs: list[onnx.ValueInfoProto] = []
        self.value = ""
        self._random = np.random.default_rng(_SEED)

    def weight(self, name: str, shape: Sizes) -> str:
        values = np.abs(self._random.standard_normal(shape)).astype(np.float32)
        self.weights.append(numpy_helper.from_array(values, name))
        return name

    def input(self, name: str, shape: Sizes) -> str:
        self.inputs.append(helper.make_tensor_value_info(name, TensorProto.FLOAT, shape))
        return name


def layer_model(layer: ModelLayer) -> onnx.ModelProto:
    """Raises ValueError, or what onnx raises, for sizes that do not fit together."""
    parts = _Parts()
    names = [
        parts.weight(f"w{i}", shape) if i in layer.constants else parts.input(f"x{i}", shape)
        for i, shape in enumerate(layer.operands)
    ]
    attributes: dict[str, Any] = dict(layer.attributes)
    parts.nodes.append(helper.make_node(layer.operator, names, ["v0"], **attributes))
    parts.value = "v0"
    shape = _shape(parts, ())
    for number, following in enumerate(layer.follows, 1):
        operands = [parts.value, *_other(parts, following, number, shape)]
        operator = "Add" if following in {"bias", "residual"} else following
        parts.value = f"v{number}"
        parts.nodes.append(helper.make_node(operator, operands, [parts.value]))
    return _model(parts, shape)


def _other(parts: _Parts, following: str, number: int, shape: Sizes) -> Iterator[str]:
    if following == "bias":
        yield parts.weight(f"b{number}", shape[-1:])
    if following == "residual":
        yield parts.input(f"r{number}", shape)


def _shape(parts: _Parts, shape: Sizes) -> Sizes:
    """The shape of the value so far."""
    inferred = onnx.shape_inference.infer_shapes(_model(parts, shape), strict_mode=True)
    dims = inferred.graph.output[0].type.tensor_type.shape.dim
    return tuple(int(dim.dim_value) for dim in dims)


def _model(parts: _Parts, shape: Sizes) -> onnx.ModelProto:
    output = helper.make_tensor_value_info(parts.value, TensorProto.FLOAT, shape or None)
    graph = helper.make_graph(parts.nodes, "layer", parts.inputs, [output], parts.weights)
    opsets = [helper.make_opsetid("", _OPSET)]
    return helper.make_model(graph, opset_imports=opsets, ir_version=_IR)
