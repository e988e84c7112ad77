"""Rewrites operators whose result has known extents though the operand that gives them is a model
input: the known extents replace the operand."""

from collections.abc import Sequence

import numpy as np
import onnx

from tunegate.compiler.importing import graph_view
from tunegate.errors import UnsupportedModelError

_AXES_ARE_INPUTS = 13
"""From this opset on, the sizes of a Split are an input."""


def rewrite_reshape(
    node: onnx.NodeProto, view: graph_view.GraphView
) -> list[onnx.NodeProto] | None:
    """Rewrites Reshape, Squeeze and Unsqueeze."""
    result, axes = view.type_of(node.output[0]), view.constant(graph_view.operand(node, 1))
    is_scalar = axes is not None and axes.ndim == 0  # ONNX Runtime takes one axis so
    if result is None or (_is_known(node, 1, view) and not is_scalar):
        return None
    new = graph_view.Replacement(node)
    new.add_reshape(node.input[0], result.shape, to=node.output[0])
    return new.nodes


def rewrite_expand(node: onnx.NodeProto, view: graph_view.GraphView) -> list[onnx.NodeProto] | None:
    """Rewrites Expand to known extents."""
    result = view.type_of(node.output[0])
    if result is None or _is_known(node, 1, view):
        return None
    return _replace_operand(node, result.shape)


def rewrite_tile(node: onnx.NodeProto, view: graph_view.GraphView) -> list[onnx.NodeProto] | None:
    """Returns Tile with repeats that follow from the result."""
    result, data = view.type_of(node.output[0]), view.type_of(node.input[0])
    if result is None or data is None or _is_known(node, 1, view) or 0 in data.shape:
        return None
    return _replace_operand(node, [n // of for n, of in zip(result.shape, data.shape, strict=True)])


def rewrite_constant_of_shape(
    node: onnx.NodeProto, view: graph_view.GraphView
) -> list[onnx.NodeProto] | None:
    """Rewrites ConstantOfShape with known extents."""
    result = view.type_of(node.output[0])
    if result is None or _is_known(node, 0, view):
        return None
    tensor = graph_view.attribute(node, "value")
    value = np.zeros(1, np.float32)
    if isinstance(tensor, onnx.TensorProto):
        value = onnx.numpy_helper.to_array(tensor)
    new = graph_view.Replacement(node)
    shape = new.constant(result.shape, np.int64)
    new.add("Expand", [new.constant(value), shape], to=node.output[0])
    return new.nodes


def rewrite_split(node: onnx.NodeProto, view: graph_view.GraphView) -> list[onnx.NodeProto] | None:
    """Rewrites Split by sizes that are an input."""
    if len(node.input) == 1 or _is_known(node, 1, view) or view.opset < _AXES_ARE_INPUTS:
        return None
    parts = [view.type_of(name) for name in node.output]
    axis = graph_view.attribute(node, "axis", 0)
    sizes = [part.shape[axis] for part in parts if part is not None]
    return _replace_operand(node, sizes) if len(sizes) == len(parts) else None


def rewrite_split_to_sequence(
    node: onnx.NodeProto, view: graph_view.GraphView
) -> list[onnx.NodeProto] | None:
    """Rewrites SplitToSequence in parts of one size by the sizes of all: TVM makes the parts even
    where the last would be much smaller."""
    chunk, data = graph_view.operand(node, 1), view.type_of(node.input[0])
    size = view.constant(chunk) if chunk else None
    if size is None or size.ndim or data is None:
        return None
    extent = data.shape[graph_view.attribute(node, "axis", 0)]
    begins = range(0, extent, int(size))
    sizes = [min(int(size), extent - begin) for begin in begins]
    return _replace_operand(node, sizes) if len(sizes) > 1 else None


def rewrite_top_k(node: onnx.NodeProto, view: graph_view.GraphView) -> list[onnx.NodeProto] | None:
    """Rewrites TopK with a count that is an input, and one in any order, which may be this. Raises
    UnsupportedModelError for none, which TVM takes for all."""
    if view.constant(graph_view.operand(node, 1)) == 0:
        raise UnsupportedModelError("its result is empty")
    if not graph_view.attribute(node, "sorted", 1):
        return [graph_view.without_attributes(node, {"sorted"})]
    result = view.type_of(node.output[0])
    if result is None or _is_known(node, 1, view):
        return None
    return _replace_operand(node, [result.shape[graph_view.attribute(node, "axis", -1)]])


def rewrite_affine_grid(
    node: onnx.NodeProto, view: graph_view.GraphView
) -> list[onnx.NodeProto] | None:
    """Rewrites AffineGrid to a size that is an input."""
    result = view.type_of(node.output[0])
    if result is None or _is_known(node, 1, view):
        return None
    batch, *extents, _ = result.shape
    return _replace_operand(node, [batch, 1, *extents])  # of any number of channels


def _replace_operand(node: onnx.NodeProto, numbers: Sequence[int]) -> list[onnx.NodeProto]:
    """Returns the node with these numbers as its second operand."""
    new, node = graph_view.Replacement(node), graph_view.copy_of(node)
    node.input[1] = new.constant(numbers, np.int64)
    return [*new.nodes, node]


def _is_known(node: onnx.NodeProto, place: int, view: graph_view.GraphView) -> bool:
    name = graph_view.operand(node, place)
    return not name or view.constant(name) is not None
