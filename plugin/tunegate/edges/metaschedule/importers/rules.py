"""The rewrite rule of each operator."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import onnx

from tunegate.edges.metaschedule.importers import (
    convolutions,
    declared_shapes,
    elementwise,
    normalizations,
    quantized,
    recurrent,
    reductions,
    refusals,
    resizing,
    selections,
    windows,
)
from tunegate.edges.metaschedule.importers.graph_view import GraphView

RewritingRule = Callable[[onnx.NodeProto, GraphView], list[onnx.NodeProto] | None]
"""Returns the nodes that take the place of one, or None where it stays."""

RULES: Mapping[str, RewritingRule] = {
    **dict.fromkeys(("LSTM", "GRU", "RNN"), recurrent.unrolled),
    **dict.fromkeys(("Reshape", "Squeeze", "Unsqueeze"), declared_shapes.with_declared_shape),
    "ConvTranspose": convolutions.transposed,
    **dict.fromkeys(("MaxUnpool", "NonMaxSuppression"), refusals.refused),
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
