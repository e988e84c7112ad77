"""A quantized model as ONNX Runtime must have it to add up exactly on CPUs without VNNI, where sums
of int8 products with uint8 saturate.

As it optimizes, it makes weights uint8 itself: each constant once for every node that reads it, and
it fails at the second. Graph slimmers merge equal zero points, so many models share them. Without
optimizations nobody does that: then the model must say it.
"""

from __future__ import annotations

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
"""The places of two operands that are multiplied, each with that of its zero point."""
_OF_ONNX_RUNTIME = frozenset(
    {"MatMulIntegerToFloat", "QAttention", "DynamicQuantizeMatMul", "DynamicQuantizeLSTM"}
)
"""Products of int8 that only models have which it has optimized and saved."""
_MANY = 4096
"""More numbers in a tensor are weights, on which no type depends."""
_OFFSET = 128
"""What int8 and uint8 lie apart, and so their zero points."""


def with_own_constants(model: Path | bytes) -> bytes:
    """Returns the model, nothing where no two nodes share one, or where it cannot be read; data
    files beside it are named, and not read."""
    try:
        if isinstance(model, bytes):
            proto = onnx.ModelProto.FromString(model)
        else:
            proto = onnx.load(model, load_external_data=False)
        is_shared = [_separate(graph) for graph in _graphs(proto.graph)]
        return bytes(proto.SerializeToString()) if any(is_shared) else b""
    except Exception:  # noqa: BLE001 -- protobuf's errors differ by version
        return b""


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
    """Returns whether nodes shared one. The first reader keeps the constant, so a graph inside that
    reads it, too, finds it."""
    is_shared = False
    constants = _int8_constants(graph)
    taken = {name for node in graph.node for name in (*node.input, *node.output)}
    taken |= {value.name for value in (*graph.initializer, *graph.input, *graph.output)}
    seen: set[str] = set()
    for node in graph.node:
        for place, name in enumerate(node.input):
            if name in seen:
                is_shared = True
                copy = graph.initializer.add()
                copy.CopyFrom(constants[name])
                copy.name = node.input[place] = _new_name(name, taken)
            elif name in constants:
                seen.add(name)
    return is_shared


def _int8_constants(graph: onnx.GraphProto) -> dict[str, TensorProto]:
    found = {each.name: each for each in graph.initializer}
    for node in graph.node:
        if node.op_type == "Constant" and node.domain in {"", "ai.onnx"}:
            for each in node.attribute:
                if each.name == "value":
                    found[node.output[0]] = each.t
    return {name: each for name, each in found.items() if each.data_type == TensorProto.INT8}


def with_unsigned_operands(model: Path | bytes) -> bytes | None:
    """Returns the model with int8 as uint8 wherever it is multiplied with uint8: each number and
    its zero point are one step of 128 further, so every difference stays. Nothing where no such
    product is, None where a node is not known well enough; data files are named, and not read."""
    if isinstance(model, bytes):
        proto = onnx.ModelProto.FromString(model)
    else:
        proto = onnx.load(model, load_external_data=False)
    graphs = [*_graphs(proto.graph)]
    operators = {node.op_type for graph in graphs for node in graph.node}
    if operators & _OF_ONNX_RUNTIME:
        return None
    if not operators & _OPERANDS.keys():
        return b""
    types = _types(proto, graphs)
    is_changed = False
    for graph in reversed(graphs):  # a graph inside is copied with the node that has it
        nodes: list[onnx.NodeProto] = []
        for node in graph.node:
            if node.op_type in _OPERANDS:
                before = _made_unsigned(node, types)
                if before is None:
                    return None
                is_changed = is_changed or bool(before)
                nodes += before
            nodes.append(node)
        copied = onnx.GraphProto(node=nodes)
        graph.ClearField("node")
        graph.node.extend(copied.node)
    return bytes(proto.SerializeToString()) if is_changed else b""


def _types(proto: onnx.ModelProto, graphs: list[onnx.GraphProto]) -> dict[str, int]:
    """The type of each value that is known."""
    inferred = onnx.shape_inference.infer_shapes(without_weights(proto, _MANY)).graph
    found = {
        value.name: value.type.tensor_type.elem_type
        for graph in (*graphs, inferred)
        for value in (*graph.input, *graph.value_info, *graph.output)
    }
    for graph in graphs:
        found |= {each.name: each.data_type for each in graph.initializer}
    return found


def _made_unsigned(node: onnx.NodeProto, types: Mapping[str, int]) -> list[onnx.NodeProto] | None:
    """Makes the node read the int8 one of its two operands as uint8, and returns the nodes that
    make it so; None where a type is not known."""
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


def _new_name(name: str, taken: set[str]) -> str:
    number = 1
    while f"{name}/{number}" in taken:
        number += 1
    taken.add(f"{name}/{number}")
    return f"{name}/{number}"
