"""Rewrites a quantized model so that ONNX Runtime sums exactly on CPUs without VNNI, where sums of
int8 products with uint8 saturate.

With optimizations it makes weights uint8 itself: each constant once per node that reads it, and it
fails at the second. Graph slimmers merge equal zero points, so many models share them. Without
optimizations nothing does that, so the model must contain it.
"""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from onnx import AttributeProto, TensorProto, helper, numpy_helper

from tunegate.models.kernel_digest import without_weights

_OPERANDS = {
    **dict.fromkeys(("MatMulInteger", "ConvInteger"), ((0, 2), (1, 3))),
    **dict.fromkeys(("QLinearMatMul", "QLinearConv", "QGemm"), ((0, 2), (3, 5))),
}
"""The positions of two factors, each with that of its zero point."""
_OF_ONNX_RUNTIME = frozenset(
    {"MatMulIntegerToFloat", "QAttention", "DynamicQuantizeMatMul", "DynamicQuantizeLSTM"}
)
"""Products of int8 that only occur in models which ONNX Runtime optimized and saved."""
_MANY = 4096
"""A tensor with more numbers holds weights: no type depends on it."""
_OFFSET = 128
"""The distance of int8 and uint8 codes, and of their zero points."""


def with_own_constants(model: Path | bytes) -> bytes:
    """Returns the model, b"" if no two nodes share a constant or it cannot be read. Data files
    beside it are named, not read."""
    try:
        proto = _read(model)
        is_shared = [_separate(graph) for graph in _graphs(proto.graph)]
        return bytes(proto.SerializeToString()) if any(is_shared) else b""
    except Exception:  # noqa: BLE001 -- protobuf's errors differ by version
        return b""


def _read(model: Path | bytes) -> onnx.ModelProto:
    return onnx.load_from_string(model if isinstance(model, bytes) else model.read_bytes())


def _graphs(graph: onnx.GraphProto) -> Iterator[onnx.GraphProto]:
    yield graph
    for node in graph.node:
        for each in node.attribute:
            if each.type == AttributeProto.GRAPH:
                yield from _graphs(each.g)
            elif each.type == AttributeProto.GRAPHS:
                for inner in each.graphs:
                    yield from _graphs(inner)


def _separate(graph: onnx.GraphProto) -> bool:
    """Returns whether nodes shared a constant. The first reader keeps it, so that a nested graph
    that reads it, too, still finds it."""
    is_shared = False
    constants = _int8_constants(graph)
    names_in_use = {name for node in graph.node for name in (*node.input, *node.output)}
    names_in_use |= {value.name for value in (*graph.initializer, *graph.input, *graph.output)}
    names: set[str] = set()
    for node in graph.node:
        for place, name in enumerate(node.input):
            if name in names:
                is_shared = True
                copy = graph.initializer.add()
                copy.CopyFrom(constants[name])
                copy.name = node.input[place] = _new_name(name, names_in_use)
            elif name in constants:
                names.add(name)
    return is_shared


def _int8_constants(graph: onnx.GraphProto) -> dict[str, TensorProto]:
    tensors = {each.name: each for each in graph.initializer}
    for node in graph.node:
        if node.op_type == "Constant" and node.domain in {"", "ai.onnx"}:
            for each in node.attribute:
                if each.name == "value":
                    tensors[node.output[0]] = each.t
    return {name: each for name, each in tensors.items() if each.data_type == TensorProto.INT8}


def with_unsigned_operands(model: Path | bytes) -> bytes | None:
    """Returns the model with int8 as uint8 wherever it is multiplied by uint8: numbers and zero
    points move by 128, so every difference stays. b"" if there is no such product, None if a node
    is not understood; data files are named, not read."""
    proto = _read(model)
    graphs = [*_graphs(proto.graph)]
    operators = {node.op_type for graph in graphs for node in graph.node}
    if operators & _OF_ONNX_RUNTIME:
        return None
    if not operators & _OPERANDS.keys():
        return b""
    types = _types(proto, graphs)
    is_changed = False
    for graph in reversed(graphs):  # a nested graph is copied with its node
        nodes: list[onnx.NodeProto] = []
        for node in graph.node:
            if node.op_type in _OPERANDS:
                before = _make_unsigned(node, types)
                if before is None:
                    return None
                is_changed = is_changed or bool(before)
                nodes += before
            nodes.append(node)
        copy = onnx.GraphProto(node=nodes)
        graph.ClearField("node")
        graph.node.extend(copy.node)
    return bytes(proto.SerializeToString()) if is_changed else b""


def _types(proto: onnx.ModelProto, graphs: list[onnx.GraphProto]) -> dict[str, int]:
    """Returns the known types of values."""
    typed_graph = onnx.shape_inference.infer_shapes(without_weights(proto, _MANY)).graph
    types = {
        value.name: value.type.tensor_type.elem_type
        for graph in (*graphs, typed_graph)
        for value in (*graph.input, *graph.value_info, *graph.output)
    }
    for graph in graphs:
        types |= {each.name: each.data_type for each in graph.initializer}
    return types


def _make_unsigned(node: onnx.NodeProto, types: Mapping[str, int]) -> list[onnx.NodeProto] | None:
    """Makes the node read its int8 factor as uint8, and returns the nodes that convert it; None if
    a type is unknown."""
    places = _OPERANDS[node.op_type]
    kinds = [types.get(node.input[operand], 0) for operand, _ in places]
    if not all(kinds):
        return None
    if kinds[0] == kinds[1]:
        return []
    operand, zero = places[kinds.index(TensorProto.INT8)]
    new: list[onnx.NodeProto] = []
    _move(node, operand, new)
    if zero < len(node.input) and node.input[zero]:
        _move(node, zero, new)
    else:
        node.input.extend([""] * (zero + 1 - len(node.input)))
        node.input[zero] = _constant(f"{node.output[0]}/zero", np.uint8(_OFFSET), new)
    return new


def _move(node: onnx.NodeProto, place: int, new: list[onnx.NodeProto]) -> None:
    stem = f"{node.output[0]}/unsigned{place}"
    offset = _constant(f"{stem}/offset", np.int32(_OFFSET), new)
    for operator, inputs, to in (
        ("Cast", [node.input[place]], TensorProto.INT32),
        ("Add", [f"{stem}/Cast", offset], None),
        ("Cast", [f"{stem}/Add"], TensorProto.UINT8),
    ):
        last = to == TensorProto.UINT8
        options: dict[str, Any] = {} if to is None else {"to": to}
        new.append(
            helper.make_node(operator, inputs, [stem if last else f"{stem}/{operator}"], **options)
        )
    node.input[place] = stem


def _constant(name: str, value: Any, new: list[onnx.NodeProto]) -> str:
    new.append(helper.make_node("Constant", [], [name], value=numpy_helper.from_array(value)))
    return name


def _new_name(name: str, names: set[str]) -> str:
    number = 1
    while f"{name}/{number}" in names:
        number += 1
    names.add(f"{name}/{number}")
    return f"{name}/{number}"
