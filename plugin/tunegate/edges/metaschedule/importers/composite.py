"""Operators that ONNX itself defines by simpler ones: their definition takes their place."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import onnx
from onnx import inliner

from tunegate.edges.metaschedule.importers.graph_view import (
    GraphView,
    TensorType,
    attribute,
)
from tunegate.edges.models.operator_names import operator_of

_COMPOSITE = frozenset(
    {
        *("Attention", "RotaryEmbedding", "LinearAttention", "CausalConvWithState", "SwiGLU"),
        *("SoftmaxCrossEntropyLoss", "NegativeLogLikelihoodLoss", "Celu", "Swish"),
        *("BlackmanWindow", "HammingWindow", "HannWindow"),
        "ai.onnx.preview.FlexAttention",
    }
)
"""Operators that TVM does not import, or takes for another operator of that name."""
_BY_OUTPUTS = frozenset({"LayerNormalization"})
"""Those of which TVM has the first output only."""
_DOMAIN = "defined"
_MASK, _SCORES = 3, 3
"""The input of an Attention that masks, and the output that has what is masked."""


def with_definitions(model: onnx.ModelProto) -> onnx.ModelProto | None:
    """Returns the model without composite operators, or None where it has none."""
    if not any(_is_composite(node) for node in model.graph.node):
        return None
    view, called = GraphView(model), onnx.ModelProto()
    called.CopyFrom(model)
    for number, node in enumerate(called.graph.node):
        definition = _definition(node, view) if _is_composite(node) else None
        if definition is not None:
            definition.name, definition.domain = f"{node.op_type}{number}", _DOMAIN
            called.functions.append(definition)
            node.op_type, node.domain = definition.name, _DOMAIN
    if not called.functions:
        return None
    called.opset_import.append(onnx.helper.make_opsetid(_DOMAIN, 1))
    return inliner.inline_local_functions(called)


def _is_composite(node: onnx.NodeProto) -> bool:
    name = operator_of(node)
    return name in _COMPOSITE or (name in _BY_OUTPUTS and any(node.output[1:]))


def _definition(node: onnx.NodeProto, view: GraphView) -> onnx.FunctionProto | None:
    """Returns the ONNX definition of one node in the opset of the model; None where it is unknown,
    or not what ONNX Runtime computes."""
    types = [view.type_of(name) if name else None for name in node.input]
    if any(name and kind is None for name, kind in zip(node.input, types, strict=True)):
        return None
    if operator_of(node) == "Attention" and _shows_masked_scores(node, types):
        return None
    schema: Any = onnx.defs.get_schema(node.op_type, view.opset, node.domain)
    definition = _written(schema, node, types, view.opset)
    for opset in definition.opset_import:
        if not opset.domain:
            opset.version = view.opset
    return definition


def _written(
    schema: Any, node: onnx.NodeProto, types: Sequence[TensorType | None], opset: int
) -> onnx.FunctionProto:
    """The definition in the newest words that the opset of the model knows."""
    if not schema.has_context_dependent_function:
        version = _newest(schema.function_opset_versions, opset)
        return _decoded(schema.get_function_with_opset_version(version))
    version = _newest(schema.context_dependent_function_opset_versions, opset)
    protos = [
        onnx.helper.make_tensor_type_proto(kind.elements, kind.shape) if kind else onnx.TypeProto()
        for kind in types
    ]
    text = schema.get_context_dependent_function_with_opset_version(
        version, node.SerializeToString(), [proto.SerializeToString() for proto in protos]
    )
    return _decoded(text)


def _decoded(text: bytes) -> onnx.FunctionProto:
    definition = onnx.FunctionProto()
    definition.ParseFromString(text)
    return definition


def _newest(versions: Sequence[int], opset: int) -> int:
    return max((version for version in versions if version <= opset), default=min(versions))


def _shows_masked_scores(node: onnx.NodeProto, types: Sequence[TensorType | None]) -> bool:
    """ONNX's definition masks them by minus infinity, ONNX Runtime by a large number."""
    mask = types[_MASK] if len(types) > _MASK else None
    is_masked = bool(attribute(node, "is_causal", 0)) or (mask is not None and mask.dtype == bool)
    return is_masked and any(node.output[_SCORES:])
