"""Counts the operations of a model: multiplications with their additions in convolutions and
products."""

from __future__ import annotations

import math
from collections.abc import Mapping
from pathlib import Path

import onnx
from onnx import shape_inference
from onnx.version_converter import convert_version

from tunegate.errors import ModelError
from tunegate.models.model_inputs import real_inputs
from tunegate.ports import Shapes
from tunegate.system.onnx_scan import parsed_model

_Sizes = Mapping[str, tuple[int, ...]]
_CONVOLUTIONS = {"Conv", "ConvInteger", "QLinearConv", "FusedConv"}
_TRANSPOSED = {"ConvTranspose"}
_PRODUCTS = {"MatMul", "MatMulInteger", "QLinearMatMul", "Gemm"}
_RIGHT = {"QLinearConv": 3, "QLinearMatMul": 3}
"""The position of the second operand if it is not 1."""
_FOLLOWS_SLICES = 17


def operations_of(file: Path, shapes: Shapes) -> float | None:
    """Returns the operations; None if sizes are unknown, nothing is counted, or there are loops or
    recurrent layers, whose work is not in their shapes."""
    try:
        model = parsed_model(file.read_bytes())
    except ModelError:
        return None
    _fix(model, shapes)
    try:
        graph = shape_inference.infer_shapes(_recent(model), data_prop=True).graph
    except Exception:  # noqa: BLE001 -- onnx raises several kinds, all of which say "not known"
        return None
    sizes = _sizes(graph)
    counts = [_node_operations(node, sizes) for node in graph.node]
    found = [count for count in counts if count is not None]
    is_known = all(count is None or math.isfinite(count) for count in counts)
    return sum(found) if found and is_known else None


def _fix(model: onnx.ModelProto, shapes: Shapes) -> None:
    for value in real_inputs(model.graph):
        if value.name in shapes and value.type.HasField("tensor_type"):
            dims = value.type.tensor_type.shape.dim
            for dim, size in zip(dims, shapes[value.name], strict=False):
                dim.dim_value = size


def _recent(model: onnx.ModelProto) -> onnx.ModelProto:
    """Returns the model in a recent opset: shape inference does not follow Slice in old ones."""
    opsets = {each.domain: each.version for each in model.opset_import}
    old = opsets.get("", _FOLLOWS_SLICES) < _FOLLOWS_SLICES
    return convert_version(model, _FOLLOWS_SLICES) if old else model


def _sizes(graph: onnx.GraphProto) -> dict[str, tuple[int, ...]]:
    values = (*graph.input, *graph.value_info, *graph.output)
    known = {
        value.name: tuple(int(dim.dim_value) for dim in value.type.tensor_type.shape.dim)
        for value in values
    }
    return known | {tensor.name: tuple(tensor.dims) for tensor in graph.initializer}


def _node_operations(node: onnx.NodeProto, sizes: _Sizes) -> float | None:
    """Returns the operations of a node, None if it counts nothing, infinity if it cannot be
    counted."""
    if node.op_type in ("LSTM", "GRU", "RNN", "Loop", "Scan", "If"):
        return math.inf
    if node.op_type not in _CONVOLUTIONS | _TRANSPOSED | _PRODUCTS:
        return None
    left = sizes.get(node.input[0], ())
    right = sizes.get(node.input[_RIGHT.get(node.op_type, 1)], ())
    output = sizes.get(node.output[0], ())
    if not (left and right and output) or 0 in (*left, *right, *output):
        return math.inf
    if node.op_type in _TRANSPOSED:
        return float(math.prod(left) * math.prod(right[1:]))
    if node.op_type in _CONVOLUTIONS:
        return float(math.prod(output) * math.prod(right[1:]))
    is_turned = any(each.name == "transA" and each.i for each in node.attribute)
    inner = left[-2] if is_turned else left[-1]
    return float(math.prod(output) * inner)
