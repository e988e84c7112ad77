"""Operators on single numbers that TVM takes differently from ONNX Runtime."""

from __future__ import annotations

import numpy as np
import onnx

from tunegate.edges.metaschedule.importers.graph_view import GraphView, attribute
from tunegate.edges.metaschedule.importers.replacement import Replacement


def infinite(node: onnx.NodeProto, view: GraphView) -> list[onnx.NodeProto] | None:
    """IsInf of one sign only."""
    signs = [attribute(node, f"detect_{sign}", 1) for sign in ("positive", "negative")]
    data = view.type_of(node.input[0])
    if all(signs) or data is None:
        return None
    new = Replacement(node)
    limits = [value for value, is_asked in zip((np.inf, -np.inf), signs, strict=True) if is_asked]
    if limits:
        limit = new.constant(limits[0], data.dtype)
        new.add("Equal", [node.input[0], limit], to=node.output[0])
    else:
        new.constant(np.zeros(data.shape), np.bool_, to=node.output[0])
    return new.nodes


def power(node: onnx.NodeProto, view: GraphView) -> list[onnx.NodeProto] | None:
    """Pow of integers, in float64 as ONNX Runtime computes it; and of numbers of two types."""
    base, exponent = (view.type_of(name) for name in node.input)
    if base is None or exponent is None:
        return None
    is_whole = base.dtype.kind in "iu"
    if not is_whole and base.elements == exponent.elements:
        return None
    new = Replacement(node)
    kind = onnx.TensorProto.DOUBLE if is_whole else base.elements
    raised = new.add("Pow", [new.cast(name, kind) for name in node.input])
    new.cast(raised, base.elements, to=node.output[0])
    return new.nodes
