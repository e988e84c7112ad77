"""The outline of an ONNX file: its inputs, and how many it has of each operator and weight."""

from __future__ import annotations

from collections import Counter

import onnx

from tunegate.artifacts.outlines import ModelOutline
from tunegate.edges.models.deciding_values import nodes_of
from tunegate.edges.models.graph import graph_digest
from tunegate.edges.models.model_inputs import graph_inputs


def outline_of(model: bytes) -> ModelOutline:
    """Raises ModelError where the file cannot be read."""
    digest = graph_digest(model)
    proto = onnx.ModelProto.FromString(model)
    graph = proto.graph
    parts = Counter(node.op_type for node in graph.node)
    parts.update(str(list(tensor.dims)) for tensor in graph.initializer)
    return ModelOutline(
        graph_digest=digest, inputs=graph_inputs(graph), parts=dict(parts), seeded=_seeded(proto)
    )


def _seeded(model: onnx.ModelProto) -> tuple[str, ...]:
    nodes = nodes_of(model)
    kinds = {node.op_type for node in nodes if any(a.name == "seed" for a in node.attribute)}
    return tuple(sorted(kinds))
