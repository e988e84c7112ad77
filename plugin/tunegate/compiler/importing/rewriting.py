"""Rewrites a model into operators that TVM's importer knows, still as ONNX, and folds the constants
that result."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path

import onnx

from tunegate.compiler.importing import (
    composite as elementwise,
)
from tunegate.compiler.importing import (
    composite as normalizations,
)
from tunegate.compiler.importing import (
    quantized,
    recurrent,
    reductions,
    resizing,
    windows,
)
from tunegate.compiler.importing import (
    reductions as selections,
)
from tunegate.compiler.importing import (
    windows as convolutions,
)
from tunegate.compiler.importing import windows as declared_shapes
from tunegate.compiler.importing.composite import with_definitions
from tunegate.compiler.importing.graph_view import GraphView
from tunegate.compiler.importing.node_errors import importing
from tunegate.errors import UnsupportedModelError
from tunegate.models.graph import operator_of
from tunegate.models.reference.session import write_optimized

_ROUNDS = 8
"""The most times that the output of a rule is rewritten again."""


def importable(model: onnx.ModelProto) -> onnx.ModelProto:
    """Returns an equivalent model in operators that TVM imports, as far as rules exist; the model
    itself if it needs no rule. Raises UnsupportedModelError for what would be built wrong."""
    require_tensors(model)
    for _ in range(_ROUNDS):
        changed = _rewrite(model) or with_definitions(model)
        if changed is None:
            break
        model = _fold_constants(changed)
    return model


def _rewrite(model: onnx.ModelProto) -> onnx.ModelProto | None:
    if not any(operator_of(node) in RULES for node in model.graph.node):
        return None
    view = GraphView(model)
    nodes: list[onnx.NodeProto] = []
    is_changed = False
    for node in model.graph.node:
        rule = RULES.get(operator_of(node))
        with importing(node):
            instead = rule(node, view) if rule else None
        is_changed = is_changed or instead is not None
        nodes.extend([node] if instead is None else instead)
    return _replace_nodes(model, nodes) if is_changed else None


def _replace_nodes(model: onnx.ModelProto, nodes: list[onnx.NodeProto]) -> onnx.ModelProto:
    changed = onnx.ModelProto()
    changed.CopyFrom(model)
    del changed.graph.node[:]
    changed.graph.node.extend(nodes)
    return changed


def _fold_constants(model: onnx.ModelProto) -> onnx.ModelProto:
    """Returns the model with constants folded by ONNX Runtime. A model that ONNX Runtime rejects
    stays as it is: the importer reports what is wrong."""
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


# Models that TVM would build wrong or fail on with an unclear error: rejected by operator.


def refused(node: onnx.NodeProto, view: GraphView) -> list[onnx.NodeProto] | None:
    """Raises UnsupportedModelError for every node of this operator."""
    raise UnsupportedModelError


def require_tensors(model: onnx.ModelProto) -> None:
    """Raises UnsupportedModelError where an output is a sequence, a map or an optional value."""
    for output in model.graph.output:
        if output.type.WhichOneof("value") not in {"tensor_type", None}:
            raise UnsupportedModelError(
                f"output {output.name} is no tensor, which is not supported"
            )


# The rewrite rule of each operator.

RewritingRule = Callable[[onnx.NodeProto, GraphView], list[onnx.NodeProto] | None]
"""Returns the nodes that replace one, or None if it stays."""

RULES: Mapping[str, RewritingRule] = {
    **dict.fromkeys(("LSTM", "GRU", "RNN"), recurrent.unrolled),
    **dict.fromkeys(("Reshape", "Squeeze", "Unsqueeze"), declared_shapes.with_declared_shape),
    "ConvTranspose": convolutions.transposed,
    **dict.fromkeys(("MaxUnpool", "NonMaxSuppression"), refused),
    "Dropout": selections.kept_everything,
    "Expand": declared_shapes.expanded_to,
    "Tile": declared_shapes.tiled,
    "ConstantOfShape": declared_shapes.constant_of_shape,
    "Split": declared_shapes.split,
    "TopK": declared_shapes.top_k,
    "AffineGrid": declared_shapes.affine_grid,
    "Slice": windows.sliced,
    "Pad": windows.padded,
    **dict.fromkeys(reductions.REDUCTIONS, reductions.reduced),
    "Resize": resizing.resized,
    **dict.fromkeys(("ReduceMax", "ReduceMin"), reductions.extreme),
    **dict.fromkeys(("CumSum", "CumProd"), reductions.cumulative),
    "OneHot": selections.one_hot,
    "EyeLike": selections.diagonal_of_ones,
    "Trilu": selections.triangle,
    "ai.onnx.ml.ArrayFeatureExtractor": selections.picked_features,
    "IsInf": elementwise.infinite,
    "Pow": elementwise.power,
    "LayerNormalization": normalizations.over_rows,
    "RMSNormalization": normalizations.over_rows,
    "LpNormalization": normalizations.by_length,
    "MeanVarianceNormalization": normalizations.by_distance,
    "QLinearMatMul": quantized.matrix_product,
    "QLinearConv": quantized.convolution,
    "DynamicQuantizeLinear": quantized.dynamically,
}
