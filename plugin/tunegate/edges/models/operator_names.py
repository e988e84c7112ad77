"""The names of operators: ONNX's own have no domain, or write it out."""

from __future__ import annotations

import onnx

STANDARD_DOMAINS = frozenset({"", "ai.onnx"})


def operator_of(node: onnx.NodeProto) -> str:
    """The name of an operator, with its domain where it is not ONNX's own."""
    return node.op_type if node.domain in STANDARD_DOMAINS else f"{node.domain}.{node.op_type}"
