"""The outline of an ONNX file: its inputs, and how many it has of each operator and weight."""

from __future__ import annotations

from collections import Counter

import onnx

from tunegate.artifacts.outlines import ModelInput, ModelOutline
from tunegate.edges.models.deciding_values import nodes_of
from tunegate.edges.models.graph import graph_digest


def outline_of(model: bytes) -> ModelOutline:
    """Raises ModelError where the file cannot be read."""
    digest = graph_digest(model)
    proto = onnx.ModelProto.FromString(model)
    graph = proto.graph
    weights = {tensor.name for tensor in graph.initializer}
    parts = Counter(node.op_type for node in graph.node)
    parts.update(str(list(tensor.dims)) for tensor in graph.initializer)
    inputs = tuple(_input(value) for value in graph.input if value.name not in weights)
    return ModelOutline(
        graph_digest=digest, inputs=inputs, parts=dict(parts), seeded=_seeded(proto)
    )


def _seeded(model: onnx.ModelProto) -> tuple[str, ...]:
    nodes = nodes_of(model)
    kinds = {node.op_type for node in nodes if any(a.name == "seed" for a in node.attribute)}
    return tuple(sorted(kinds))


def _input(value: onnx.ValueInfoProto) -> ModelInput:
    dims = value.type.tensor_type.shape.dim
    return ModelInput(value.name, tuple(d.dim_value if d.dim_value > 0 else None for d in dims))
