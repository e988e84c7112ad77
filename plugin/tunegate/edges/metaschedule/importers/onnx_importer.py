"""TVM's importer of ONNX, which also knows our operators."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import onnx
from tvm.relax.frontend.onnx.onnx_frontend import ONNXGraphImporter

from tunegate.edges.metaschedule.importers.graph_view import GraphView
from tunegate.edges.metaschedule.importers.relax_operators import OPERATORS


def imported(model: onnx.ModelProto) -> Any:
    """The Relax module of a model. Raises what TVM's converters raise."""
    opset = GraphView.opset_of(model)
    return _Importer({}, "float32").from_onnx(model.graph, opset)


class _Importer(ONNXGraphImporter):  # type: ignore[misc]
    def _check_for_unsupported_ops(self, graph: onnx.GraphProto) -> None:
        others = [node for node in graph.node if node.op_type not in OPERATORS]
        super()._check_for_unsupported_ops(SimpleNamespace(node=others))

    def _convert_operator(self, op_name: str, inputs: Any, attrs: Any, opset: int) -> Any:
        ours = OPERATORS[op_name](self.bb, inputs, attrs) if op_name in OPERATORS else None
        if ours is None:
            return super()._convert_operator(op_name, inputs, attrs, opset)
        return self.bb.normalize(ours)
