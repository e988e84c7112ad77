"""Splits long sums of float32 into sums of partial sums.

A kernel adds numbers one after the other. Once the sum is large, each number that is added loses
its last digits: 2^20 equal numbers come out 1.5% off, where a check tolerates 0.1%. In parts of a
thousand they lose a hundred times less. ONNX Runtime adds in parts, too. Shorter sums stay as they
are, so that tuning records of usual models still fit.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

import numpy as np
import onnx

from tunegate.compiler.importing import graph_view
from tunegate.errors import UnsupportedModelError

_MOST = 2**15
"""Longer sums are split. So many equal numbers come out up to 0.05% off."""
_PART = 2**10
_SOFTMAX_HAS_ONE_AXIS = 13
_TOO_LONG = "it adds {:,} products, too many for float32"
_BEFORE = {"ReduceL1": "Abs", "ReduceL2": "Mul", "ReduceSumSquare": "Mul"}
"""The operator of each number before the sum."""
_AFTER = {"ReduceL2": "Sqrt", "ReduceLogSum": "Log"}
"""The operator of the sum."""
_Matrix = tuple[str, Sequence[int]]
"""A value and its extents."""
_Shape = tuple[int, ...]
_Rule = Callable[[onnx.NodeProto, graph_view.GraphView], list[onnx.NodeProto] | None]


class _Place(NamedTuple):
    """A node of float32 that may have a long sum, and the extents of its first operand and its
    result."""

    node: onnx.NodeProto
    view: graph_view.GraphView
    data: _Shape
    result: _Shape


def _of_float32(split: Callable[[_Place], list[onnx.NodeProto] | None]) -> _Rule:
    """Makes a rewriting rule that leaves single numbers and other types as they are."""

    def rule(node: onnx.NodeProto, view: graph_view.GraphView) -> list[onnx.NodeProto] | None:
        data, result = view.type_of(node.input[0]), view.type_of(node.output[0])
        if data is None or result is None or data.dtype != np.float32 or not data.rank:
            return None
        return split(_Place(node, view, data.shape, result.shape))

    return rule


def _split_reduction(place: _Place) -> list[onnx.NodeProto] | None:
    node, view, data, result = place
    axes = _axes_of(node, view, len(data))
    count = math.prod(data[axis] for axis in axes)
    if count <= _MOST:
        return None
    new, x, largest = graph_view.Replacement(node), node.input[0], ""
    if node.op_type == "ReduceLogSumExp":
        largest = new.add_reduction("ReduceMax", x, axes, view.opset)
        x = new.add("Exp", [new.add("Sub", [x, largest])])
    elif before := _BEFORE.get(node.op_type):
        x = new.add(before, [x] * (2 if before == "Mul" else 1))
    sums = _sum(new, x, data, axes, view)
    if node.op_type in {"ReduceMean", "GlobalAveragePool"}:
        sums = new.add("Div", [sums, new.constant(count, np.float32)])
    elif after := _AFTER.get(node.op_type):
        sums = new.add(after, [sums])
    if largest:
        sums = new.add("Add", [new.add("Log", [sums]), largest])
    if len(result) == len(data):
        new.add("Identity", [sums], to=node.output[0])
    else:
        new.add_reshape(sums, result, to=node.output[0])
    return new.nodes


def _split_softmax(place: _Place) -> list[onnx.NodeProto] | None:
    node, view, data, _ = place
    is_old = view.opset < _SOFTMAX_HAS_ONE_AXIS
    axis = graph_view.attribute(node, "axis", 1 if is_old else -1) % len(data)
    axes = range(axis, len(data)) if is_old else (axis,)
    if math.prod(data[each] for each in axes) <= _MOST:
        return None
    new = graph_view.Replacement(node)
    largest = new.add_reduction("ReduceMax", node.input[0], axes, view.opset)
    differences = new.add("Sub", [node.input[0], largest])
    powers = new.add("Exp", [differences])
    sums = _sum(new, powers, data, axes, view)
    if node.op_type == "Softmax":
        new.add("Div", [powers, sums], to=node.output[0])
    else:
        new.add("Sub", [differences, new.add("Log", [sums])], to=node.output[0])
    return new.nodes


def _split_matmul(place: _Place) -> list[onnx.NodeProto] | None:
    node, view, data, result = place
    other = view.type_of(node.input[1])
    if other is None or data[-1] <= _MOST:
        return None
    if min(len(data), other.rank) == 1:
        raise UnsupportedModelError(_TOO_LONG.format(data[-1]))
    new = graph_view.Replacement(node)
    sums = _sum_products(new, (node.input[0], data), (node.input[1], other.shape), view)
    new.add_reshape(sums, result, to=node.output[0])
    return new.nodes


def _split_gemm(place: _Place) -> list[onnx.NodeProto] | None:
    node, view, data, result = place
    transposes = [graph_view.attribute(node, name, 0) for name in ("transA", "transB")]
    (m, n), k = result, data[0 if transposes[0] else 1]
    if k <= _MOST:
        return None
    new = graph_view.Replacement(node)
    one, other = (
        new.add("Transpose", [name], perm=[1, 0]) if is_turned else name
        for name, is_turned in zip(node.input[:2], transposes, strict=True)
    )
    sums = new.add_reshape(_sum_products(new, (one, (m, k)), (other, (k, n)), view), [m, n])
    alpha, beta = (
        new.constant(graph_view.attribute(node, name, 1.0), np.float32)
        for name in ("alpha", "beta")
    )
    if not graph_view.operand(node, 2):
        new.add("Mul", [sums, alpha], to=node.output[0])
        return new.nodes
    bias = new.add("Mul", [node.input[2], beta])
    new.add("Add", [new.add("Mul", [sums, alpha]), bias], to=node.output[0])
    return new.nodes


def _sum_products(
    new: graph_view.Replacement, a: _Matrix, b: _Matrix, view: graph_view.GraphView
) -> str:
    """Adds a product of long rows and columns as a batch of products of their parts, and the sum of
    the batch. `a` is [..., m, k] and `b` [..., k, n]."""
    (one, (*batch, m, k)), (other, (*others, _, n)) = a, b
    counts = range(-(-k // _MOST), k // _PART + 1)
    parts = next((count for count in counts if k % count == 0), 0)
    if not parts:
        raise UnsupportedModelError(_TOO_LONG.format(k))
    rank = len(batch)
    rows = new.add_reshape(one, [*batch, m, parts, k // parts])
    rows = new.add("Transpose", [rows], perm=[*range(rank), rank + 1, rank, rank + 2])
    columns = new.add_reshape(other, [*others, parts, k // parts, n])
    products = new.add("MatMul", [rows, columns])
    shape = np.broadcast_shapes(tuple(batch), tuple(others))
    return _sum(new, products, [*shape, parts, m, n], [len(shape)], view)


def _refuse_convolution(place: _Place) -> list[onnx.NodeProto] | None:
    weights = place.view.type_of(place.node.input[1])
    count = 0 if weights is None else math.prod(weights.shape[1:])
    if count > _MOST:
        raise UnsupportedModelError(_TOO_LONG.format(count))
    return None


def _refuse_einsum(place: _Place) -> list[onnx.NodeProto] | None:
    """At least what the result lacks is summed."""
    count = math.prod(place.data) // max(math.prod(place.result), 1)
    if count > _MOST:
        raise UnsupportedModelError(_TOO_LONG.format(count))
    return None


def _axes_of(node: onnx.NodeProto, view: graph_view.GraphView, rank: int) -> Sequence[int]:
    """Returns the axes that are summed. Those that are an input are constants by now, or were
    rewritten."""
    if node.op_type == "GlobalAveragePool":
        return range(2, rank)
    numbers = graph_view.attribute(node, "axes")
    if numbers is None and graph_view.operand(node, 1):
        constant = view.constant(node.input[1])
        numbers = [] if constant is None else constant.ravel().tolist()
    if not numbers and graph_view.attribute(node, "noop_with_empty_axes", 0):
        return ()
    return sorted(int(axis) % rank for axis in numbers) if numbers else range(rank)


def _sum(
    new: graph_view.Replacement,
    x: str,
    shape: Sequence[int],
    axes: Sequence[int],
    view: graph_view.GraphView,
) -> str:
    """Adds the sums along the axes, which keep an extent of 1: one axis after the other, and the
    parts of a long one before their sums. Zeros fill the last part."""
    extents = list(shape)
    for axis in reversed(axes):
        while extents[axis] > _PART:
            parts = -(-extents[axis] // _PART)
            if rest := parts * _PART - extents[axis]:
                zeros = np.zeros([*extents[:axis], rest, *extents[axis + 1 :]], np.float32)
                x = new.add("Concat", [x, new.constant(zeros)], axis=axis)
            x = new.add_reshape(x, [*extents[:axis], parts, _PART, *extents[axis + 1 :]])
            x = new.add_reduction("ReduceSum", x, [axis + 1], view.opset, keepdims=0)
            extents[axis] = parts
        # No reshape: images may change layout.
        x = new.add_reduction("ReduceSum", x, [axis], view.opset)
    return x


LONG_SUMS: Mapping[str, _Rule] = {
    **dict.fromkeys(
        (
            *(f"Reduce{name}" for name in ("Sum", "Mean", "SumSquare", "L1", "L2")),
            *("ReduceLogSum", "ReduceLogSumExp", "GlobalAveragePool"),
        ),
        _of_float32(_split_reduction),
    ),
    **dict.fromkeys(("Softmax", "LogSoftmax"), _of_float32(_split_softmax)),
    "MatMul": _of_float32(_split_matmul),
    "Gemm": _of_float32(_split_gemm),
    "Conv": _of_float32(_refuse_convolution),
    "Einsum": _of_float32(_refuse_einsum),
}
"""The rules, which raise UnsupportedModelError for a long sum that cannot be split."""
