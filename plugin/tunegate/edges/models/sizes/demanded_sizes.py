"""The sizes that weights demand of an open dimension: who reads an input says how wide it is."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import onnx

_UNARY = frozenset({"Identity", "Cast", "Relu", "Sigmoid", "Tanh", "Dropout", "Clip", "Neg", "Abs"})
_CHANNELS_IN_WEIGHT = frozenset({"Conv", "ConvInteger"})
_CHANNELS_FIRST = frozenset({"ConvTranspose", "BatchNormalization", "InstanceNormalization"})
_WIDTH_LAST = frozenset({"LSTM", "GRU", "RNN", "LayerNormalization"})
_PRODUCTS = frozenset({"MatMul", "MatMulInteger", "Gemm"})
_Shapes = Mapping[str, tuple[int, ...]]
Place = tuple[str, int]


def demanded_sizes(graph: onnx.GraphProto) -> dict[Place, int]:
    """Sizes by (name of the input, axis counted from the end where it is negative)."""
    weights = {tensor.name: tuple(tensor.dims) for tensor in graph.initializer}
    origins = {value.name: value.name for value in graph.input if value.name not in weights}
    found: dict[Place, int] = {}
    for node in graph.node:
        source = origins.get(node.input[0]) if node.input else None
        if source is None:
            continue
        if node.op_type in _UNARY:
            origins[node.output[0]] = source
        for axis, size in _demands(node, weights):
            found.setdefault((source, axis), size)
    return found


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
