"""Operators that pick or mark places of a tensor."""

from __future__ import annotations

import numpy as np
import onnx

from tunegate.edges.metaschedule.importers.graph_view import GraphView, attribute, operand
from tunegate.edges.metaschedule.importers.replacement import Replacement

_TRAINING = 2
_MASK_IS_BOOL = 12


def one_hot(node: onnx.NodeProto, view: GraphView) -> list[onnx.NodeProto] | None:
    """OneHot whose depth or values are inputs, or whose indices are no int64."""
    indices, result = view.type_of(node.input[0]), view.type_of(node.output[0])
    values = view.type_of(node.input[2])
    is_plain = all(view.constant(node.input[place]) is not None for place in (1, 2))
    if indices is None or result is None or values is None or is_plain:
        return None
    axis = attribute(node, "axis", -1) % result.rank
    depth = result.shape[axis]
    new = Replacement(node)
    shape = [*indices.shape[:axis], 1, *indices.shape[axis:]]
    place = new.reshaped(new.cast(node.input[0], onnx.TensorProto.INT64), shape)
    from_end = new.add("Less", [place, new.constant(0, np.int64)])
    place = new.add(
        "Where", [from_end, new.add("Add", [place, new.constant(depth, np.int64)]), place]
    )
    every = new.constant(np.arange(depth).reshape([-1] + [1] * (result.rank - axis - 1)), np.int64)
    off, on = (new.sliced(node.input[2], 0, number, number + 1) for number in (0, 1))
    new.add("Where", [new.add("Equal", [place, every]), on, off], to=node.output[0])
    return new.nodes


def triangle(node: onnx.NodeProto, view: GraphView) -> list[onnx.NodeProto] | None:
    """Trilu whose diagonal is an input."""
    data = view.type_of(node.input[0])
    diagonal = operand(node, 1)
    if data is None or not diagonal or view.constant(diagonal) is not None:
        return None
    rows, columns = data.shape[-2:]
    offsets = np.arange(columns)[None, :] - np.arange(rows)[:, None]
    new = Replacement(node)
    least = new.reshaped(diagonal, [1, 1])
    if attribute(node, "upper", 1):
        is_outside = new.add("Less", [new.constant(offsets, np.int64), least])
    else:
        is_outside = new.add("Less", [least, new.constant(offsets, np.int64)])
    zero = new.constant(0, data.dtype)
    new.add("Where", [is_outside, zero, node.input[0]], to=node.output[0])
    return new.nodes


def kept_everything(node: onnx.NodeProto, view: GraphView) -> list[onnx.NodeProto] | None:
    """Dropout that is not training and shows its mask, which is of truth values."""
    data = view.type_of(node.input[0])
    if data is None or not any(node.output[1:]) or view.opset < _MASK_IS_BOOL:
        return None
    training = operand(node, _TRAINING)
    known = view.constant(training) if training else np.zeros(1)
    if known is None or known.any():
        return None
    new = Replacement(node)
    if node.output[0]:
        new.add("Identity", node.input[:1], to=node.output[0])
    new.constant(np.ones(data.shape), np.bool_, to=node.output[1])
    return new.nodes


def picked_features(node: onnx.NodeProto, view: GraphView) -> list[onnx.NodeProto] | None:
    """ArrayFeatureExtractor: some places of the last axis."""
    data, result = view.type_of(node.input[0]), view.type_of(node.output[0])
    if data is None or result is None:
        return None
    new = Replacement(node)
    places = new.reshaped(node.input[1], [-1])
    picked = new.add("Gather", [node.input[0], places], axis=data.rank - 1)
    new.reshaped(picked, result.shape, to=node.output[0])
    return new.nodes
