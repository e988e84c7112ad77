"""Sizes that a graph demands of an input that it leaves open: the nodes that read it decide its
width and its rank."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import onnx

_UNARY = frozenset({"Identity", "Cast", "Relu", "Sigmoid", "Tanh", "Dropout", "Clip", "Neg", "Abs"})
_CHANNELS_IN_WEIGHT = frozenset({"Conv", "ConvInteger"})
_CHANNELS_FIRST = frozenset({"ConvTranspose", "BatchNormalization", "InstanceNormalization"})
_WIDTH_LAST = frozenset({"LSTM", "GRU", "RNN", "LayerNormalization"})
_PRODUCTS = frozenset({"MatMul", "MatMulInteger", "Gemm"})
_WINDOWS = frozenset({"MaxPool", "AveragePool", "LpPool"})
_GLOBAL = frozenset({"GlobalAveragePool", "GlobalMaxPool", "SpaceToDepth", "DepthToSpace"})
_IMAGE_RANK, _MATRIX_RANK, _SEQUENCE_RANK = 4, 2, 3
_Shapes = Mapping[str, tuple[int, ...]]
Place = tuple[str, int]


def demanded_sizes(graph: onnx.GraphProto) -> dict[Place, int]:
    """Sizes by (name of the input, axis counted from the end where it is negative)."""
    weights = _weights(graph)
    found: dict[Place, int] = {}
    for node, source in _readers(graph, weights):
        for axis, size in _demands(node, weights):
            found.setdefault((source, axis), size)
    return found


def demanded_ranks(graph: onnx.GraphProto) -> dict[str, int]:
    """Returns the rank of inputs, by the nodes that read them; none for an input without such a
    node."""
    weights = _weights(graph)
    found: dict[str, int] = {}
    for node, source in _readers(graph, weights):
        if rank := _rank(node, weights):
            found.setdefault(source, rank)
    return found


def _weights(graph: onnx.GraphProto) -> _Shapes:
    return {tensor.name: tuple(tensor.dims) for tensor in graph.initializer}


def _readers(graph: onnx.GraphProto, weights: _Shapes) -> Iterator[tuple[onnx.NodeProto, str]]:
    """Yields each node whose first operand is an input, also behind operators that keep its
    shape."""
    origins = {value.name: value.name for value in graph.input if value.name not in weights}
    for node in graph.node:
        source = origins.get(node.input[0]) if node.input else None
        if source is None:
            continue
        if node.op_type in _UNARY:
            origins[node.output[0]] = source
        yield node, source


def _rank(node: onnx.NodeProto, weights: _Shapes) -> int:
    shape = weights.get(node.input[1], ()) if len(node.input) > 1 else ()
    lists = {each.name: len(each.ints) for each in node.attribute}
    if node.op_type == "Transpose":
        return lists.get("perm", 0)
    if node.op_type in _WINDOWS:
        return 2 + lists.get("kernel_shape", 0)
    if node.op_type in _CHANNELS_IN_WEIGHT | {"ConvTranspose"}:
        return len(shape)
    if node.op_type in _GLOBAL | {"BatchNormalization", "InstanceNormalization"}:
        return _IMAGE_RANK
    if node.op_type in {"LSTM", "GRU", "RNN"}:
        return _SEQUENCE_RANK
    return _MATRIX_RANK if node.op_type in _PRODUCTS and len(shape) == _MATRIX_RANK else 0


def _demands(node: onnx.NodeProto, weights: _Shapes) -> Iterator[tuple[int, int]]:
    """Axes of the first operand, with their sizes."""
    shape = weights.get(node.input[1]) if len(node.input) > 1 else None
    if not shape:
        return
    integers = {each.name: each.i for each in node.attribute}
    if node.op_type in _CHANNELS_IN_WEIGHT:
        yield 1, shape[1] * (integers.get("group") or 1)
    elif node.op_type in _CHANNELS_FIRST:
        yield 1, shape[0]
    elif node.op_type in _WIDTH_LAST:
        yield -1, shape[-1]
    elif node.op_type in _PRODUCTS and len(shape) > 1:
        yield -1, shape[-1] if integers.get("transB") else shape[-2]
