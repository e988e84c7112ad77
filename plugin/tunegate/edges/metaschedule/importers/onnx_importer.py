"""TVM's importer of ONNX, which also knows our operators."""

from __future__ import annotations

import re
from types import SimpleNamespace
from typing import Any

import onnx
from tvm import relax
from tvm.relax.frontend.onnx.onnx_frontend import ONNXGraphImporter

from tunegate.edges.metaschedule.importers.graph_view import GraphView
from tunegate.edges.metaschedule.importers.relax_operators import OPERATORS
from tunegate.edges.metaschedule.passes.kernel_nodes import with_node_names


def imported(model: onnx.ModelProto) -> Any:
    """The Relax module of a model. Raises what TVM's converters raise."""
    importer = _Importer({}, "float32")
    module = importer.from_onnx(model.graph, GraphView.opset_of(model))
    return with_node_names(module, importer.values_of(model.graph))


class _Importer(ONNXGraphImporter):  # type: ignore[misc]
    def _check_for_unsupported_ops(self, graph: onnx.GraphProto) -> None:
        others = [node for node in graph.node if node.op_type not in OPERATORS]
        super()._check_for_unsupported_ops(SimpleNamespace(node=others))

    def values_of(self, graph: onnx.GraphProto) -> dict[Any, int]:
        """The expression of each value that a node computes, with the place of the node."""
        return {
            self._nodes[name]: place
            for place, node in enumerate(graph.node)
            for name in node.output
            if isinstance(self._nodes.get(name), relax.Expr)
        }

    def _sanitize_name(self, name: str) -> str:
        """A kernel's parameters are called as the model's inputs: `gpu_0/data_0` is no name in CUDA
        C."""
        renamed: str = super()._sanitize_name(re.sub(r"\W", "_", name, flags=re.ASCII))
        return renamed

    def _convert_operator(self, op_name: str, inputs: Any, attrs: Any, opset: int) -> Any:
        ours = OPERATORS[op_name](self.bb, inputs, attrs) if op_name in OPERATORS else None
        if ours is None:
            return super()._convert_operator(op_name, inputs, attrs, opset)
        return self.bb.normalize(ours)
