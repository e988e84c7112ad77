"""A model as TVM's importer can take it: what it does not know is put in other words, in the same
language, and constants that come of it are folded."""

from __future__ import annotations

import tempfile
from pathlib import Path

import onnx

from tunegate.edges.metaschedule.importers.composite import with_definitions
from tunegate.edges.metaschedule.importers.graph_view import GraphView
from tunegate.edges.metaschedule.importers.refusals import require_tensors
from tunegate.edges.metaschedule.importers.rules import RULES
from tunegate.edges.models.operator_names import operator_of
from tunegate.edges.reference.session import write_optimized

_ROUNDS = 8
"""The most times that what a rule wrote is rewritten again."""


def importable(model: onnx.ModelProto) -> onnx.ModelProto:
    """The same numbers, in operators that TVM imports as far as rules know how. A model without
    any that need it is returned as it is. Raises UnsupportedModelError for what would be built
    wrong."""
    require_tensors(model)
    for _ in range(_ROUNDS):
        changed = _rewritten(model) or with_definitions(model)
        if changed is None:
            break
        model = _folded(changed)
    return model


def _rewritten(model: onnx.ModelProto) -> onnx.ModelProto | None:
    if not any(operator_of(node) in RULES for node in model.graph.node):
        return None
    view = GraphView(model)
    nodes: list[onnx.NodeProto] = []
    is_changed = False
    for node in model.graph.node:
        rule = RULES.get(operator_of(node))
        instead = rule(node, view) if rule else None
        is_changed = is_changed or instead is not None
        nodes.extend([node] if instead is None else instead)
    return _with_nodes(model, nodes) if is_changed else None


def _with_nodes(model: onnx.ModelProto, nodes: list[onnx.NodeProto]) -> onnx.ModelProto:
    changed = onnx.ModelProto()
    changed.CopyFrom(model)
    del changed.graph.node[:]
    changed.graph.node.extend(nodes)
    return changed


def _folded(model: onnx.ModelProto) -> onnx.ModelProto:
    """The model with constants folded by ONNX Runtime. One that it does not take stays as it is:
    the importer says what is wrong with it."""
    names = {value.name for value in model.graph.input}
    with tempfile.TemporaryDirectory() as folder:
        before, after = Path(folder) / "before.onnx", Path(folder) / "after.onnx"
        try:
            onnx.save(model, before)
            write_optimized(before, after)
            folded = onnx.load(after)
        except Exception:
            return model
    for value in [value for value in folded.graph.input if value.name not in names]:
        folded.graph.input.remove(value)  # initializers that it lists as inputs
    return folded
