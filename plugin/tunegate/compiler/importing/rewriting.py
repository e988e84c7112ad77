"""Rewrites a model into operators that TVM's importer knows, still as ONNX, and folds the constants
that result."""

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

import numpy as np
import onnx
import onnx.version_converter

from tunegate.compiler.importing import (
    composite,
    control_flow,
    graph_view,
    recurrent,
    reductions,
    resizing,
    windows,
)
from tunegate.compiler.importing.node_errors import importing
from tunegate.errors import UnsupportedModelError
from tunegate.models.graph import operator_of
from tunegate.models.inputs.constants import attributes_of
from tunegate.models.reference.session import write_optimized
from tunegate.system.onnx_scan import bodies_of, nodes_of
from tunegate.system.output.temporary_folder import TemporaryFolder

# Rewrites products of quantized numbers: integer products, then scaled and rounded.

_A, _A_SCALE, _A_ZERO, _B, _B_SCALE, _B_ZERO, _SCALE, _ZERO, _BIAS = range(9)
_WITH_SCALE = 10


class _Operands(NamedTuple):
    """The inputs of a node, with their types."""

    names: Sequence[str]
    types: Sequence[graph_view.TensorType]

    def size(self, place: int) -> int:
        """Returns the number of elements of an operand."""
        return int(np.prod(self.types[place].shape))

    def flat(self, new: graph_view.Replacement, place: int, trailing: Sequence[int] = ()) -> str:
        """Returns an operand as one number, or one per channel broadcast over the `trailing` last
        axes."""
        shape = [] if self.size(place) == 1 else [-1, *trailing]
        return new.add_reshape(self.names[place], shape)


def matrix_product(node: onnx.NodeProto, view: graph_view.GraphView) -> list[onnx.NodeProto] | None:
    """Rewrites QLinearMatMul. Scales may be per column of the second matrix."""
    operands = _operands(node, view)
    if operands is None or operands.size(_B_SCALE) != operands.size(_B_ZERO):
        return None
    new = graph_view.Replacement(node)
    zeros = [operands.flat(new, _A_ZERO), _zero_of_b(new, operands, view)]
    sums = new.add("MatMulInteger", [node.input[_A], node.input[_B], *zeros])
    _add_rescaling(new, operands, sums, [], to=node.output[0])
    return new.nodes


def convolution(node: onnx.NodeProto, view: graph_view.GraphView) -> list[onnx.NodeProto] | None:
    """Rewrites QLinearConv. Scales may be per output channel."""
    operands = _operands(node, view)
    if operands is None:
        return None
    new = graph_view.Replacement(node)
    behind = [1] * (operands.types[_A].rank - 2)
    zeros = [operands.flat(new, _A_ZERO), _zero_of_b(new, operands, view)]
    sums = new.add("ConvInteger", [node.input[_A], node.input[_B], *zeros], **attributes_of(node))
    if graph_view.operand(node, _BIAS):
        sums = new.add("Add", [sums, new.add_reshape(node.input[_BIAS], [-1, *behind])])
    _add_rescaling(new, operands, sums, behind, to=node.output[0])
    return new.nodes


def single_zeros(node: onnx.NodeProto, view: graph_view.GraphView) -> list[onnx.NodeProto] | None:
    """Rewrites MatMulInteger with vectors of one zero point, which TVM takes for a matrix beside a
    vector."""
    new, changed = graph_view.Replacement(node), onnx.NodeProto()
    changed.CopyFrom(node)
    for place, name in enumerate(node.input):
        kind = view.type_of(name)
        if place > 1 and kind is not None and kind.shape == (1,):
            changed.input[place] = new.add_reshape(name, [])
    return [*new.nodes, changed] if new.nodes else None


_PACKED = frozenset({"int4", "uint4", "int2", "uint2"})
_SCALED_ALONG = 1


def unpack_weights(node: onnx.NodeProto, view: graph_view.GraphView) -> list[onnx.NodeProto] | None:
    """Rewrites DequantizeLinear of 4-bit or 2-bit weights as a constant of floats: TVM has no such
    types. Scales may be per block."""
    kind = view.type_of(node.input[0])
    if kind is None or kind.dtype.name not in _PACKED:
        return None
    weights, scale = view.constant(node.input[0]), view.constant(node.input[1])
    zero = (
        view.constant(node.input[2])
        if graph_view.operand(node, 2)
        else np.zeros_like(scale, np.int32)
    )
    if weights is None or scale is None or zero is None:
        raise UnsupportedModelError(f"its {kind.dtype.name} numbers are not constants")
    axis = graph_view.attribute(node, "axis", _SCALED_ALONG) % max(1, weights.ndim)
    scales, zeros = (_spread_over_blocks(each, node, axis, weights.shape) for each in (scale, zero))
    floats = (weights.astype(np.float32) - zeros.astype(np.float32)) * scales.astype(np.float32)
    new = graph_view.Replacement(node)
    new.constant(floats, scale.dtype, to=node.output[0])
    return new.nodes


def _spread_over_blocks(
    values: np.ndarray, node: onnx.NodeProto, axis: int, shape: tuple[int, ...]
) -> np.ndarray:
    """Returns the scales or zero points in a shape that broadcasts to the weights: one number, one
    per place of an axis, or one per block."""
    block = graph_view.attribute(node, "block_size", 0)
    if block:
        return np.take(np.repeat(values, block, axis), range(shape[axis]), axis)
    rest = [1] * (len(shape) - axis - 1)
    return values.reshape(-1, *rest) if values.size > 1 else values.reshape(())


def dynamically(node: onnx.NodeProto, view: graph_view.GraphView) -> list[onnx.NodeProto] | None:
    """Rewrites DynamicQuantizeLinear: the scale of an all-zero tensor is 1, as in ONNX Runtime."""
    if view.opset < _WITH_SCALE:
        return None
    new, x = graph_view.Replacement(node), node.input[0]
    outputs = [*node.output, "", ""][:3]
    zero, most = (new.constant(value, np.float32) for value in (0, 255))
    low = new.add("Min", [new.add("ReduceMin", [x], keepdims=0), zero])
    high = new.add("Max", [new.add("ReduceMax", [x], keepdims=0), zero])
    span = new.add("Sub", [high, low])
    is_nothing = new.add("Equal", [span, zero])
    one = new.constant(1, np.float32)
    scale = new.add("Where", [is_nothing, one, new.add("Div", [span, most])])
    scale = new.add("Identity", [scale], to=outputs[1] or None)
    exact = new.add("Clip", [new.add("Sub", [zero, new.add("Div", [low, scale])]), zero, most])
    rounded = new.add("Round", [exact])
    new.cast(rounded, onnx.TensorProto.UINT8, to=outputs[2] or None)
    shifted = new.add("Add", [new.add("Round", [new.add("Div", [x, scale])]), rounded])
    new.cast(new.add("Clip", [shifted, zero, most]), onnx.TensorProto.UINT8, to=outputs[0])
    return new.nodes


def _add_rescaling(
    new: graph_view.Replacement, operands: _Operands, sums: str, trailing: list[int], *, to: str
) -> None:
    """Adds the node's output: sums times scales, rounded to the nearest even number."""
    scales = [operands.flat(new, _A_SCALE), operands.flat(new, _B_SCALE, trailing)]
    factor = new.add("Div", [new.add("Mul", scales), operands.flat(new, _SCALE)])
    exact = new.add("Mul", [new.cast(sums, onnx.TensorProto.FLOAT), factor])
    point = new.cast(operands.flat(new, _ZERO), onnx.TensorProto.FLOAT)
    shifted = new.add("Add", [new.add("Round", [exact]), point])
    kind = operands.types[_ZERO]
    limits = np.iinfo(kind.dtype)
    bounds = [new.constant(value, np.float32) for value in (limits.min, limits.max)]
    new.cast(new.add("Clip", [shifted, *bounds]), kind.elements, to=to)


def _zero_of_b(new: graph_view.Replacement, operands: _Operands, view: graph_view.GraphView) -> str:
    """Returns the zero point, as one number if all columns or channels share it."""
    zero = view.constant(operands.names[_B_ZERO])
    if zero is not None and bool((zero == zero.flat[0]).all()):
        return new.constant(zero.flat[0], zero.dtype)
    return operands.flat(new, _B_ZERO)


def _operands(node: onnx.NodeProto, view: graph_view.GraphView) -> _Operands | None:
    """Returns the operands; None unless all are known, the factors are bytes, and the scales and
    zero points of whole tensors are single numbers."""
    types = [view.type_of(name) for name in node.input[:_BIAS]]
    kinds = [kind for kind in types if kind is not None]
    if len(kinds) != _BIAS or not _are_bytes(kinds):
        return None
    operands = _Operands(node.input, kinds)
    places = (_A_SCALE, _A_ZERO, _SCALE, _ZERO)
    return operands if all(operands.size(place) == 1 for place in places) else None


def _are_bytes(types: Sequence[graph_view.TensorType]) -> bool:
    """Returns whether both factors and all zero points are bytes and the scales float32."""
    scales = {_A_SCALE, _B_SCALE, _SCALE}
    return all(
        kind.dtype == np.float32 if place in scales else kind.dtype in (np.int8, np.uint8)
        for place, kind in enumerate(types)
    )


_RANDOM = (
    *("RandomNormal", "RandomNormalLike", "RandomUniform", "RandomUniformLike"),
    *("Bernoulli", "Multinomial"),
)
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
        changed = _rewrite(model, RULES) or composite.with_definitions(model)
        if changed is None:
            break
        model = _fold_constants(changed)
    return model


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
    upgraded = model
    with suppress(Exception):  # onnx raises many kinds
        upgraded = onnx.version_converter.convert_version(model, _RULES_OPSET)
    if upgraded is not model and graph_view.GraphView.opset_of(model) < _RESIZE_SAYS_HOW:
        view = graph_view.GraphView(upgraded)
        for node in nodes_of(upgraded):
            if operator_of(node) == "Resize":
                with importing(node):
                    resizing.as_written_before(node, view)
    return upgraded


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
    changed = onnx.ModelProto()
    changed.CopyFrom(model)
    del changed.graph.node[:]
    changed.graph.node.extend(nodes)
    return changed


def _fold_constants(model: onnx.ModelProto) -> onnx.ModelProto:
    """Returns the model with constants folded by ONNX Runtime. A model that ONNX Runtime rejects
    stays as it is: the importer reports what is wrong."""
    names = {value.name for value in model.graph.input}
    with TemporaryFolder() as folder:
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


def refuse_operator(
    node: onnx.NodeProto, view: graph_view.GraphView
) -> list[onnx.NodeProto] | None:
    """Raises UnsupportedModelError for every node of this operator."""
    raise UnsupportedModelError


def drawn_at_random(
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


def refuse_nearest_reflection(
    node: onnx.NodeProto, view: graph_view.GraphView
) -> list[onnx.NodeProto] | None:
    """Raises UnsupportedModelError for the nearest pixel of an image that is reflected in the edge
    of its pixels: TVM rounds after it reflects, and takes the other of two at equal distances."""
    mode = graph_view.attribute(node, "mode", "")
    padding = graph_view.attribute(node, "padding_mode", "")
    between = not graph_view.attribute(node, "align_corners", 0)
    if (mode, padding) == ("nearest", "reflection") and between:
        raise UnsupportedModelError("it takes the nearest pixel of a reflected image")
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
    **dict.fromkeys(("Reshape", "Squeeze", "Unsqueeze"), windows.with_declared_shape),
    "Scan": control_flow.unroll_scan,
    "Loop": control_flow.unroll_loop,
    "If": control_flow.merge_branches,
    "ConvTranspose": windows.rewrite_conv_transpose,
    "Col2Im": windows.image_of_columns,
    "RoiAlign": windows.regions_in_pixels,
    **dict.fromkeys(("MaxUnpool", "NonMaxSuppression"), refuse_operator),
    **dict.fromkeys(_RANDOM, drawn_at_random),
    "Dropout": reductions.rewrite_dropout_mask,
    "Expand": windows.expanded_to,
    "Tile": windows.rewrite_tile,
    "ConstantOfShape": windows.constant_of_shape,
    "Split": windows.rewrite_split,
    "TopK": windows.top_k,
    "AffineGrid": windows.affine_grid,
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
    "IsInf": composite.infinite,
    "Celu": composite.exponential_unit,
    "Constant": composite.numbers_as_tensor,
    "Pow": composite.power,
    "LayerNormalization": composite.over_rows,
    "RMSNormalization": composite.over_rows,
    "LpNormalization": composite.by_length,
    "MeanVarianceNormalization": composite.by_distance,
    "QLinearMatMul": matrix_product,
    "QLinearConv": convolution,
    "MatMulInteger": single_zeros,
    "DynamicQuantizeLinear": dynamically,
    "DequantizeLinear": unpack_weights,
    "QuantizeLinear": composite.quantize_in_float32,
    **dict.fromkeys(("ScatterElements", "ScatterND"), composite.scattered_bits),
    "GridSample": refuse_nearest_reflection,
    "SequenceInsert": refuse_insert_from_end,
    "SplitToSequence": windows.split_in_chunks,
}
