"""Operators whose result has known extents though the operand that gives them is an input of the
model: the extents take the operand's place."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import onnx

from tunegate.compiler.importing.graph_view import GraphView, attribute, operand
from tunegate.compiler.importing.replacement import Replacement

_AXES_ARE_INPUTS = 13
"""The opset from which the sizes of a Split are an input."""


def with_declared_shape(node: onnx.NodeProto, view: GraphView) -> list[onnx.NodeProto] | None:
    """Reshape, Squeeze and Unsqueeze."""
    result = view.type_of(node.output[0])
    if result is None or _is_known(node, 1, view):
        return None
    new = Replacement(node)
    new.reshaped(node.input[0], result.shape, to=node.output[0])
    return new.nodes


def expanded_to(node: onnx.NodeProto, view: GraphView) -> list[onnx.NodeProto] | None:
    """Expand to known extents."""
    result = view.type_of(node.output[0])
    if result is None or _is_known(node, 1, view):
        return None
    return _with_operand(node, result.shape)


def tiled(node: onnx.NodeProto, view: GraphView) -> list[onnx.NodeProto] | None:
    """Returns Tile with repeats that follow from the result."""
    result, data = view.type_of(node.output[0]), view.type_of(node.input[0])
    if result is None or data is None or _is_known(node, 1, view) or 0 in data.shape:
        return None
    return _with_operand(node, [n // of for n, of in zip(result.shape, data.shape, strict=True)])


def constant_of_shape(node: onnx.NodeProto, view: GraphView) -> list[onnx.NodeProto] | None:
    """ConstantOfShape of known extents."""
    result = view.type_of(node.output[0])
    if result is None or _is_known(node, 0, view):
        return None
    given = attribute(node, "value")
    value = np.zeros(1, np.float32)
    if isinstance(given, onnx.TensorProto):
        value = onnx.numpy_helper.to_array(given)
    new = Replacement(node)
    shape = new.constant(result.shape, np.int64)
    new.add("Expand", [new.constant(value), shape], to=node.output[0])
    return new.nodes


def split(node: onnx.NodeProto, view: GraphView) -> list[onnx.NodeProto] | None:
    """Split by sizes that are an input."""
    if len(node.input) == 1 or _is_known(node, 1, view) or view.opset < _AXES_ARE_INPUTS:
        return None
    parts = [view.type_of(name) for name in node.output]
    axis = attribute(node, "axis", 0)
    sizes = [part.shape[axis] for part in parts if part is not None]
    return _with_operand(node, sizes) if len(sizes) == len(parts) else None


def top_k(node: onnx.NodeProto, view: GraphView) -> list[onnx.NodeProto] | None:
    """TopK of a number that is an input."""
    result = view.type_of(node.output[0])
    if result is None or _is_known(node, 1, view):
        return None
    return _with_operand(node, [result.shape[attribute(node, "axis", -1)]])


def affine_grid(node: onnx.NodeProto, view: GraphView) -> list[onnx.NodeProto] | None:
    """AffineGrid to a size that is an input."""
    result = view.type_of(node.output[0])
    if result is None or _is_known(node, 1, view):
        return None
    batch, *extents, _ = result.shape
    return _with_operand(node, [batch, 1, *extents])  # of any number of channels


def _with_operand(node: onnx.NodeProto, numbers: Sequence[int]) -> list[onnx.NodeProto]:
    """The node with these for its second operand."""
    new = Replacement(node)
    changed = onnx.NodeProto()
    changed.CopyFrom(node)
    changed.input[1] = new.constant(numbers, np.int64)
    return [*new.nodes, changed]


def _is_known(node: onnx.NodeProto, place: int, view: GraphView) -> bool:
    name = operand(node, place)
    return not name or view.constant(name) is not None
