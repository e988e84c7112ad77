"""Changes that a pull request may make to any model: other weights, or more work."""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

_NUMBERS = {TensorProto.FLOAT, TensorProto.INT32, TensorProto.INT64, TensorProto.FLOAT16}
_WEIGHTS = {TensorProto.FLOAT, TensorProto.FLOAT16, TensorProto.INT8, TensorProto.UINT8}
_FITTED = {"class_weights", "target_weights", "coefficients", "scale"}
_FITTED_OF = "ai.onnx.ml"
_LARGE, _SMALL = (256, 0.5), (64, 0.01)
"""The side of a square matrix, and the milliseconds that a core takes at most for two of them."""


def new_weights(model: onnx.ModelProto) -> onnx.ModelProto:
    """The model after more training: each weight is up to one percent different, also where it is
    an attribute of an operator."""
    changed = onnx.ModelProto()
    changed.CopyFrom(model)
    random = np.random.default_rng(1)
    for tensor in _weights(changed.graph):
        values = numpy_helper.to_array(tensor)
        factors = 1 + 0.01 * random.uniform(-1, 1, values.shape)
        tensor.CopyFrom(
            numpy_helper.from_array((values * factors).astype(values.dtype), tensor.name)
        )
    for node in changed.graph.node:
        for attribute in node.attribute:
            if node.domain == _FITTED_OF and attribute.name in _FITTED:
                attribute.floats[:] = [value * 1.001 for value in attribute.floats]
    return changed


def _weights(graph: onnx.GraphProto) -> Iterator[onnx.TensorProto]:
    attributes = [attribute for node in graph.node for attribute in node.attribute]
    tensors = [*graph.initializer, *(each.t for each in attributes if each.HasField("t"))]
    for tensor in tensors:
        if tensor.data_type in _WEIGHTS and len(tensor.dims) > 1:  # scales of a Resize have one
            yield tensor
    for each in attributes:
        if each.HasField("g"):
            yield from _weights(each.g)


def slower(model: onnx.ModelProto, milliseconds: float) -> onnx.ModelProto:
    """The model with a chain of matrix products that take about as long, and one more output: no
    optimizer can leave them out."""
    changed = onnx.ModelProto()
    changed.CopyFrom(model)
    side, each_ms = _LARGE if milliseconds > 1 else _SMALL
    graph, count = changed.graph, max(2, math.ceil(milliseconds / each_ms))
    if not any(opset.domain in {"", "ai.onnx"} for opset in changed.opset_import):
        changed.opset_import.append(helper.make_opsetid("", 13))
    random = np.random.default_rng(0)
    square = (random.standard_normal((side, side)) / math.sqrt(side)).astype("f")
    graph.initializer.append(numpy_helper.from_array(square, "more_weights"))
    graph.node.extend(_chain(_number(graph), count))
    graph.output.append(helper.make_tensor_value_info("more", TensorProto.FLOAT, []))
    return changed


def _number(graph: onnx.GraphProto) -> str:
    weights = {tensor.name for tensor in graph.initializer}
    return next(
        str(value.name)
        for value in graph.input
        if value.name not in weights and value.type.tensor_type.elem_type in _NUMBERS
    )


def _chain(source: str, count: int) -> Iterator[onnx.NodeProto]:
    yield helper.make_node("Cast", [source], ["more_float"], "more/cast", to=TensorProto.FLOAT)
    yield helper.make_node("ReduceMean", ["more_float"], ["more_mean"], "more/mean", keepdims=0)
    yield helper.make_node("Add", ["more_weights", "more_mean"], ["more_0"], "more/begin")
    for at in range(count):
        product, bounded = f"more_product_{at}", f"more_{at + 1}"
        yield helper.make_node("MatMul", [f"more_{at}", "more_weights"], [product], f"more/{at}")
        yield helper.make_node("Tanh", [product], [bounded], f"more/tanh_{at}")
    yield helper.make_node("ReduceMean", [f"more_{count}"], ["more"], "more/end", keepdims=0)
