"""Rewrites a model into operators that TVM's importer knows, still as ONNX, and folds the constants
that result."""

from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path

import onnx
import onnx.version_converter

from tunegate.compiler.importing import (
    composite,
    control_flow,
    graph_view,
    known_extents,
    long_sums,
    quantized_products,
    recurrent,
    reductions,
    resizing,
    transposed_convolutions,
    windows,
)
from tunegate.compiler.importing.node_errors import importing
from tunegate.errors import UnsupportedModelError
from tunegate.models.graph import GENERATORS, operator_of
from tunegate.models.reference.session import write_optimized
from tunegate.system.onnx_scan import bodies_of, nodes_of
from tunegate.system.output.temporary_folder import TemporaryFolder

_RULES_OPSET, _RESIZE_SAYS_HOW, _SCANS_ONE = 13, 11, 9
_ROUNDS = 8
"""The most times that the output of a rule is rewritten again."""


def importable(model: onnx.ModelProto) -> onnx.ModelProto:
    """Returns an equivalent model in operators that TVM imports, as far as rules exist; the model
    itself if it needs no rule. Raises UnsupportedModelError for what would be built wrong."""
    require_tensors(model)
    if graph_view.GraphView.opset_of(model) < _RULES_OPSET and _has_rules(model, RULES):
        _refuse_older_bodies(model)
        model = _upgrade_opset(_rewrite(model, _RULES_BEFORE) or model)
    for _ in range(_ROUNDS):
        replacement = _rewrite(model, RULES) or composite.with_definitions(model)
        if replacement is None:
            break
        model = _fold_constants(replacement)
    return _rewrite(model, long_sums.LONG_SUMS) or model


def _has_rules(model: onnx.ModelProto, rules: Mapping[str, "RewritingRule"]) -> bool:
    return any(operator_of(node) in rules for node in model.graph.node)


def _refuse_older_bodies(model: onnx.ModelProto) -> None:
    """Raises UnsupportedModelError for what ONNX's converter makes another operator of and no rule
    reaches: inside of a body, and a Scan before operator set 9, which has an axis of batches."""
    for node in model.graph.node:
        with importing(node):
            if operator_of(node) == "Scan" and graph_view.GraphView.opset_of(model) < _SCANS_ONE:
                raise UnsupportedModelError("it is of an operator set before 9")
            for inner in (each for body in bodies_of(node) for each in body.node):
                is_plain = operator_of(inner) == "Dropout" and not any(inner.output[1:])
                if operator_of(inner) in _RULES_BEFORE and not is_plain:
                    raise UnsupportedModelError(f"its {inner.op_type} is of an older operator set")


def _upgrade_opset(model: onnx.ModelProto) -> onnx.ModelProto:
    """Returns the model in the operator set that the rules write, or the model itself if ONNX
    cannot convert it. In an older set, Clip takes no bounds as inputs and would lose them."""
    newer = model
    with suppress(Exception):  # onnx raises many kinds
        newer = onnx.version_converter.convert_version(model, _RULES_OPSET)
    if newer is not model and graph_view.GraphView.opset_of(model) < _RESIZE_SAYS_HOW:
        view = graph_view.GraphView(newer)
        for node in nodes_of(newer):
            if operator_of(node) == "Resize":
                with importing(node):
                    resizing.as_written_before(node, view)
    return newer


def _rewrite(
    model: onnx.ModelProto, rules: Mapping[str, "RewritingRule"]
) -> onnx.ModelProto | None:
    if not _has_rules(model, rules):
        return None
    view = graph_view.GraphView(model)
    nodes: list[onnx.NodeProto] = []
    is_changed = False
    for node in model.graph.node:
        rule = rules.get(operator_of(node))
        with importing(node):
            instead = rule(node, view) if rule else None
        is_changed = is_changed or instead is not None
        nodes.extend([node] if instead is None else instead)
    return _replace_nodes(model, nodes) if is_changed else None


def _replace_nodes(model: onnx.ModelProto, nodes: list[onnx.NodeProto]) -> onnx.ModelProto:
    copy = onnx.ModelProto()
    copy.CopyFrom(model)
    del copy.graph.node[:]
    copy.graph.node.extend(nodes)
    return copy


def _fold_constants(model: onnx.ModelProto) -> onnx.ModelProto:
    """Returns the model with constants folded by ONNX Runtime. A model that ONNX Runtime rejects
    stays as it is: the importer reports what is wrong."""
    names = {value.name for value in model.graph.input}
    with TemporaryFolder() as folder:
        before, after = Path(folder) / "before.onnx", Path(folder) / "after.onnx"
        try:
            onnx.save(model, before)
            write_optimized(before, after)
            lighter = onnx.load(after)
        except Exception:
            return model
    for value in [value for value in lighter.graph.input if value.name not in names]:
        lighter.graph.input.remove(value)  # initializers that it lists as inputs
    return lighter


# Models that TVM would build wrong or fail on with an unclear error: rejected by operator.


def refuse_operator(
    node: onnx.NodeProto, view: graph_view.GraphView
) -> list[onnx.NodeProto] | None:
    """Raises UnsupportedModelError for every node of this operator."""
    raise UnsupportedModelError


def refuse_random_numbers(
    node: onnx.NodeProto, view: graph_view.GraphView
) -> list[onnx.NodeProto] | None:
    """Raises UnsupportedModelError: builds that draw random numbers cannot be compared."""
    raise UnsupportedModelError("its numbers are random")


def refuse_insert_from_end(
    node: onnx.NodeProto, view: graph_view.GraphView
) -> list[onnx.NodeProto] | None:
    """Raises UnsupportedModelError for a place that is counted from the end of a sequence: TVM puts
    the tensor one place further."""
    place = view.constant(graph_view.operand(node, 2)) if graph_view.operand(node, 2) else None
    if place is not None and int(place) < 0:
        raise UnsupportedModelError("it counts its place from the end")
    return None


def refuse_reflection(
    node: onnx.NodeProto, view: graph_view.GraphView
) -> list[onnx.NodeProto] | None:
    """Raises UnsupportedModelError for two reflected images. In the edge of its pixels TVM rounds
    after it reflects, and takes the other of two nearest pixels at equal distances. Between the
    pixels of one row or column it divides by zero."""
    if graph_view.attribute(node, "padding_mode", "") != "reflection":
        return None
    image = view.type_of(node.input[0])
    if not graph_view.attribute(node, "align_corners", 0):
        if graph_view.attribute(node, "mode", "") == "nearest":
            raise UnsupportedModelError("it takes the nearest pixel of a reflected image")
    elif image is not None and 1 in image.shape[2:]:
        raise UnsupportedModelError("it reflects an image of one row or column")
    return None


def require_tensors(model: onnx.ModelProto) -> None:
    """Raises UnsupportedModelError where an output is a sequence, a map, an optional value, or a
    constant of no numbers, which a build would save and never load."""
    empty = {tensor.name for tensor in model.graph.initializer if 0 in tensor.dims}
    for output in model.graph.output:
        if output.name in empty:
            raise UnsupportedModelError(f"output {output.name} is a constant without numbers")
        if output.type.WhichOneof("value") not in {"tensor_type", None}:
            raise UnsupportedModelError(
                f"output {output.name} is not a tensor, which is not supported"
            )


# The rewrite rule of each operator.

RewritingRule = Callable[[onnx.NodeProto, graph_view.GraphView], list[onnx.NodeProto] | None]
"""Returns the nodes that replace one, or None if it stays."""

_RULES_BEFORE: Mapping[str, RewritingRule] = {
    "Hardmax": composite.of_flat_rows,
    "Dropout": reductions.rewrite_dropout_mask,
}
"""Rules for operators that ONNX's converter to a newer operator set replaces by others."""
RULES: Mapping[str, RewritingRule] = {
    **dict.fromkeys(("LSTM", "GRU", "RNN"), recurrent.unroll_recurrent),
    **dict.fromkeys(("Reshape", "Squeeze", "Unsqueeze"), known_extents.rewrite_reshape),
    "Scan": control_flow.unroll_scan,
    "Loop": control_flow.unroll_loop,
    "If": control_flow.merge_branches,
    "ConvTranspose": transposed_convolutions.rewrite_conv_transpose,
    "Col2Im": transposed_convolutions.rewrite_col2im,
    "RoiAlign": windows.rewrite_roi_align,
    **dict.fromkeys(("MaxUnpool", "NonMaxSuppression"), refuse_operator),
    **dict.fromkeys(GENERATORS, refuse_random_numbers),
    "Dropout": reductions.rewrite_dropout_mask,
    "Expand": known_extents.rewrite_expand,
    "Tile": known_extents.rewrite_tile,
    "ConstantOfShape": known_extents.rewrite_constant_of_shape,
    "Split": known_extents.rewrite_split,
    "TopK": known_extents.rewrite_top_k,
    "AffineGrid": known_extents.rewrite_affine_grid,
    "Slice": windows.rewrite_slice,
    "Pad": windows.rewrite_pad,
    **dict.fromkeys(reductions.REDUCTIONS, reductions.rewrite_reduction),
    "Resize": resizing.rewrite_resize,
    "Upsample": resizing.refuse_upsample,
    **dict.fromkeys(("ReduceMax", "ReduceMin"), reductions.extreme),
    **dict.fromkeys(("CumSum", "CumProd"), reductions.cumulative),
    "OneHot": reductions.one_hot,
    "EyeLike": reductions.diagonal_of_ones,
    "Trilu": reductions.triangle,
    "ai.onnx.ml.ArrayFeatureExtractor": reductions.picked_features,
    "Compress": reductions.kept_slices,
    "IsInf": composite.infinite,
    "Celu": composite.exponential_unit,
    "Constant": composite.numbers_as_tensor,
    "Pow": composite.power,
    "LayerNormalization": composite.over_rows,
    "RMSNormalization": composite.over_rows,
    "LpNormalization": composite.by_length,
    "MeanVarianceNormalization": composite.by_distance,
    "QLinearMatMul": quantized_products.rewrite_matrix_product,
    "QLinearConv": quantized_products.rewrite_convolution,
    "MatMulInteger": quantized_products.rewrite_matmul_integer,
    "DynamicQuantizeLinear": quantized_products.rewrite_dynamic_quantization,
    "DequantizeLinear": quantized_products.unpack_weights,
    "QuantizeLinear": composite.quantize_in_float32,
    **dict.fromkeys(("ScatterElements", "ScatterND"), composite.scattered_bits),
    "GridSample": refuse_reflection,
    "SequenceInsert": refuse_insert_from_end,
    "SplitToSequence": known_extents.rewrite_split_to_sequence,
}
