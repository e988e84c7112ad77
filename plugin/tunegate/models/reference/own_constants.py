"""A quantized model in which no two nodes share an int8 constant, as ONNX Runtime must have it to
add up exactly on CPUs without VNNI: it rewrites each constant once for every node that reads it,
and fails at the second. Graph slimmers merge equal zero points, so many models share them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import onnx
from onnx import AttributeProto, TensorProto


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


def _new_name(name: str, taken: set[str]) -> str:
    number = 1
    while f"{name}/{number}" in taken:
        number += 1
    taken.add(f"{name}/{number}")
    return f"{name}/{number}"
