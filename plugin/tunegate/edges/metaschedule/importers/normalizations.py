"""Normalizations that TVM lacks, or does not take over several axes."""

from __future__ import annotations

import math

import numpy as np
import onnx

from tunegate.edges.inputs.constants import attributes_of
from tunegate.edges.metaschedule.importers.graph_view import GraphView, attribute
from tunegate.edges.metaschedule.importers.replacement import Replacement

_AXES_ARE_INPUTS = 13
_MEAN_AXES_ARE_INPUTS = 18
_LEAST_DEVIATION = 1e-9
"""ONNX's own definition adds it, so that what is equal everywhere becomes zero."""


def over_rows(node: onnx.NodeProto, view: GraphView) -> list[onnx.NodeProto] | None:
    """LayerNormalization and RMSNormalization over several axes, with one output: as of rows. TVM
    does not take them over all axes, and computes other numbers where an image among them is given
    another layout."""
    types = [view.type_of(name) for name in node.input if name]
    data = types[0]
    if data is None or data.rank <= 1 or any(node.output[1:]):
        return None
    axis = attribute(node, "axis", -1) % data.rank
    size, rows = math.prod(data.shape[axis:]), math.prod(data.shape[:axis])
    if axis == data.rank - 1:
        return None
    if any(kind is None or math.prod(kind.shape) != size for kind in types[1:]):
        return None
    new = Replacement(node)
    given = [
        new.reshaped(name, [size] if place else [rows, size])
        for place, name in enumerate(name for name in node.input if name)
    ]
    row = new.add(node.op_type, given, **{**attributes_of(node), "axis": 1})
    new.reshaped(row, data.shape, to=node.output[0])
    return new.nodes


def by_length(node: onnx.NodeProto, view: GraphView) -> list[onnx.NodeProto] | None:
    """LpNormalization. What has no length stays zero."""
    data = view.type_of(node.input[0])
    if data is None or view.opset < _AXES_ARE_INPUTS:
        return None
    axis, power = attribute(node, "axis", -1) % data.rank, attribute(node, "p", 2)
    new = Replacement(node)
    zero, one = new.constant(0, data.dtype), new.constant(1, data.dtype)
    sizes = new.add("Abs" if power == 1 else "Mul", [node.input[0]] * (1 if power == 1 else 2))
    operand = new.constant([axis], np.int64)
    length = new.add("ReduceSum", [sizes, operand], keepdims=1)
    if power != 1:
        length = new.add("Sqrt", [length])
    is_nothing = new.add("Equal", [length, zero])
    divisor = new.add("Where", [is_nothing, one, length])
    new.add("Div", [node.input[0], divisor], to=node.output[0])
    return new.nodes


def by_distance(node: onnx.NodeProto, view: GraphView) -> list[onnx.NodeProto] | None:
    """MeanVarianceNormalization, with the variance as the mean of squared distances. As the
    difference of two means it would cancel wherever values lie far from zero."""
    data = view.type_of(node.input[0])
    if data is None:
        return None
    new, axes = Replacement(node), attribute(node, "axes", [0, 2, 3])

    def mean(value: str) -> str:
        if view.opset < _MEAN_AXES_ARE_INPUTS:
            return new.add("ReduceMean", [value], axes=axes, keepdims=1)
        return new.add("ReduceMean", [value, new.constant(axes, np.int64)], keepdims=1)

    distance = new.add("Sub", [node.input[0], mean(node.input[0])])
    deviation = new.add("Sqrt", [mean(new.add("Mul", [distance, distance]))])
    divisor = new.add("Add", [deviation, new.constant(_LEAST_DEVIATION, data.dtype)])
    new.add("Div", [distance, divisor], to=node.output[0])
    return new.nodes
