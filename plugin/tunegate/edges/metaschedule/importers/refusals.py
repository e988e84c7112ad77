"""Models that TVM would build wrong, or with an error that names nothing: refused by name."""

from __future__ import annotations

import onnx

from tunegate.edges.metaschedule.importers.graph_view import GraphView
from tunegate.errors import UnsupportedModelError


def refused(node: onnx.NodeProto, view: GraphView) -> list[onnx.NodeProto] | None:
    """Raises UnsupportedModelError, whatever the node looks like."""
    raise UnsupportedModelError(f"{node.op_type} is not supported")


def require_tensors(model: onnx.ModelProto) -> None:
    """Raises UnsupportedModelError where an output is a sequence, a map or an optional value."""
    for output in model.graph.output:
        if output.type.WhichOneof("value") not in {"tensor_type", None}:
            raise UnsupportedModelError(
                f"output {output.name} is no tensor, which is not supported"
            )
