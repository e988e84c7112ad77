"""Replaces operators that ONNX defines by simpler ones with their definition."""

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import onnx
from onnx import inliner

from tunegate.compiler.importing.graph_view import GraphView, Replacement, TensorType, attribute
from tunegate.compiler.importing.node_errors import importing
from tunegate.errors import UnsupportedModelError
from tunegate.models.graph import operator_of
from tunegate.models.inputs.constants import attributes_of

_COMPOSITE = frozenset(
    {
        *("Attention", "RotaryEmbedding", "LinearAttention", "CausalConvWithState", "SwiGLU"),
        *("SoftmaxCrossEntropyLoss", "NegativeLogLikelihoodLoss", "Swish"),
        *("BlackmanWindow", "HammingWindow", "HannWindow"),
        "ai.onnx.preview.FlexAttention",
    }
)
"""Operators that TVM does not import, or confuses with another of the same name."""
_DOMAIN = "defined"
_MASK, _SCORES = 3, 3
"""The mask input of Attention, and its output of masked scores."""


def with_definitions(model: onnx.ModelProto) -> onnx.ModelProto | None:
    """Returns the model without composite operators, or None where it has none."""
    if not any(operator_of(node) in _COMPOSITE for node in model.graph.node):
        return None
    view, new_model = GraphView(model), onnx.ModelProto()
    new_model.CopyFrom(model)
    for number, node in enumerate(new_model.graph.node):
        with importing(node):
            definition = _definition(node, view) if operator_of(node) in _COMPOSITE else None
        if definition is not None:
            definition.name, definition.domain = f"{node.op_type}{number}", _DOMAIN
            new_model.functions.append(definition)
            node.op_type, node.domain = definition.name, _DOMAIN
    if not new_model.functions:
        return None
    new_model.opset_import.append(onnx.helper.make_opsetid(_DOMAIN, 1))
    return inliner.inline_local_functions(new_model)


def _definition(node: onnx.NodeProto, view: GraphView) -> onnx.FunctionProto | None:
    """Returns the ONNX definition of one node in the opset of the model; None where it is unknown.
    Raises UnsupportedModelError where it is not what ONNX Runtime computes."""
    types = [view.type_of(name) if name else None for name in node.input]
    if any(name and kind is None for name, kind in zip(node.input, types, strict=True)):
        return None
    if operator_of(node) == "Attention" and _shows_masked_scores(node, types):
        raise UnsupportedModelError("its scores are an output, and it masks some of them")
    schema: Any = onnx.defs.get_schema(node.op_type, view.opset, node.domain)
    definition = _definition_text(schema, node, types, view.opset)
    for opset in definition.opset_import:
        if not opset.domain:
            opset.version = view.opset
    return definition


def _definition_text(
    schema: Any, node: onnx.NodeProto, types: Sequence[TensorType | None], opset: int
) -> onnx.FunctionProto:
    """Returns the definition in the newest operators that the model's opset knows."""
    if not schema.has_context_dependent_function:
        version = _newest(schema.function_opset_versions, opset)
        return _decode(schema.get_function_with_opset_version(version))
    version = _newest(schema.context_dependent_function_opset_versions, opset)
    protos = [
        onnx.helper.make_tensor_type_proto(kind.elements, kind.shape) if kind else onnx.TypeProto()
        for kind in types
    ]
    text = schema.get_context_dependent_function_with_opset_version(
        version, node.SerializeToString(), [proto.SerializeToString() for proto in protos]
    )
    return _decode(text)


def _decode(text: bytes) -> onnx.FunctionProto:
    definition = onnx.FunctionProto()
    definition.ParseFromString(text)
    return definition


def _newest(versions: Sequence[int], opset: int) -> int:
    return max((version for version in versions if version <= opset), default=min(versions))


def _shows_masked_scores(node: onnx.NodeProto, types: Sequence[TensorType | None]) -> bool:
    """Returns whether masked scores are an output: ONNX's definition masks by minus infinity, ONNX
    Runtime by a large number."""
    mask = types[_MASK] if len(types) > _MASK else None
    is_masked = bool(attribute(node, "is_causal", 0)) or (mask is not None and mask.dtype == bool)
    return is_masked and any(node.output[_SCORES:])


def exponential_unit(node: onnx.NodeProto, view: GraphView) -> list[onnx.NodeProto] | None:
    """Rewrites Celu. ONNX's own definition makes a list of a single number."""
    data = view.type_of(node.input[0])
    if data is None:
        return None
    new = Replacement(node)
    alpha = new.constant(attribute(node, "alpha", 1.0), data.dtype)
    unit = new.add("Elu", [new.add("Div", [node.input[0], alpha])], alpha=1.0)
    new.add("Mul", [unit, alpha], to=node.output[0])
    return new.nodes


def numbers_as_tensor(node: onnx.NodeProto, view: GraphView) -> list[onnx.NodeProto] | None:
    """Rewrites a Constant of a number or a list, as definitions have it: TVM reads tensors."""
    value = view.constant(node.output[0])
    if value is None or attribute(node, "value") is not None:
        return None
    new = Replacement(node)
    new.constant(value, value.dtype, to=node.output[0])
    return new.nodes


# Normalizations that TVM lacks, or does not take over several axes.

_AXES_ARE_INPUTS = 13
_LEAST_DEVIATION = 1e-9
"""ONNX's own definition adds it, so that a constant input gives zero."""
_EPSILON = 1e-5


def over_rows(node: onnx.NodeProto, view: GraphView) -> list[onnx.NodeProto] | None:
    """Rewrites LayerNormalization and RMSNormalization over several axes as one over rows. TVM does
    not support all axes at once, and computes other numbers where an image among them changes
    layout. It has only the first output, and no float64."""
    types = [view.type_of(name) for name in node.input if name]
    data = types[0]
    if data is None or not data.rank or None in types:
        return None
    axis = attribute(node, "axis", -1) % data.rank
    if data.dtype == np.float64 or any(node.output[1:]):
        return _in_simple_operators(node, view, data, axis)
    if data.rank == 1:
        return None
    size, rows = math.prod(data.shape[axis:]), math.prod(data.shape[:axis])
    if any(kind is not None and kind.shape != data.shape[axis:] for kind in types[1:]):
        return _with_whole_operands(node, data.shape[axis:])
    if axis == data.rank - 1:
        return None
    new = Replacement(node)
    operands = [
        new.add_reshape(name, [size] if place else [rows, size])
        for place, name in enumerate(name for name in node.input if name)
    ]
    row = new.add(node.op_type, operands, **{**attributes_of(node), "axis": 1})
    new.add_reshape(row, data.shape, to=node.output[0])
    return new.nodes


def _with_whole_operands(node: onnx.NodeProto, shape: tuple[int, ...]) -> list[onnx.NodeProto]:
    """The norm with a scale and a bias for each element of a row: ONNX's definition and TVM take no
    others."""
    new, norm = Replacement(node), onnx.NodeProto()
    norm.CopyFrom(node)
    for place, name in enumerate(node.input):
        if place and name:
            norm.input[place] = new.add("Expand", [name, new.constant(shape, np.int64)])
    return [*new.nodes, norm]


def _in_simple_operators(
    node: onnx.NodeProto, view: GraphView, data: TensorType, axis: int
) -> list[onnx.NodeProto]:
    """The norm with the variance as the mean of squared distances, float64 in itself. ONNX's own
    definition subtracts two means, which cancel for values far from zero, in float32."""
    new = Replacement(node)
    kind = data.elements if data.dtype == np.float64 else onnx.TensorProto.FLOAT
    distance, axes = new.cast(node.input[0], kind), range(axis, data.rank)
    outputs = [*node.output, "", ""][:3]
    if node.op_type == "LayerNormalization":
        mean = new.add_reduction("ReduceMean", distance, axes, view.opset)
        distance = new.add("Sub", [distance, mean])
        _add_statistic(new, view, mean, outputs[1])
    squares = new.add("Mul", [distance, distance])
    variance = new.add_reduction("ReduceMean", squares, axes, view.opset)
    least = new.cast(new.constant(attribute(node, "epsilon", _EPSILON), np.float32), kind)
    deviation = new.add("Sqrt", [new.add("Add", [variance, least])])
    _add_statistic(new, view, new.add("Reciprocal", [deviation]), outputs[2])
    result = new.cast(new.add("Div", [distance, deviation]), data.elements)
    for operator, operand in zip(("Mul", "Add"), filter(None, node.input[1:]), strict=False):
        result = new.add(operator, [result, operand])
    new.add("Identity", [result], to=outputs[0])
    return new.nodes


def _add_statistic(new: Replacement, view: GraphView, value: str, output: str) -> None:
    """Adds an output that has a number for each row, if anybody asks for it."""
    if output:
        kind = view.type_of(output)
        new.cast(value, kind.elements if kind else onnx.TensorProto.FLOAT, to=output)


def by_length(node: onnx.NodeProto, view: GraphView) -> list[onnx.NodeProto] | None:
    """Rewrites LpNormalization. A vector of length zero stays zero."""
    data = view.type_of(node.input[0])
    if data is None or view.opset < _AXES_ARE_INPUTS:
        return None
    axis, power = attribute(node, "axis", -1) % data.rank, attribute(node, "p", 2)
    new = Replacement(node)
    zero, one = new.constant(0, data.dtype), new.constant(1, data.dtype)
    sizes = new.add("Abs" if power == 1 else "Mul", [node.input[0]] * (1 if power == 1 else 2))
    length = new.add_reduction("ReduceSum", sizes, [axis], view.opset)
    if power != 1:
        length = new.add("Sqrt", [length])
    is_nothing = new.add("Equal", [length, zero])
    divisor = new.add("Where", [is_nothing, one, length])
    new.add("Div", [node.input[0], divisor], to=node.output[0])
    return new.nodes


def by_distance(node: onnx.NodeProto, view: GraphView) -> list[onnx.NodeProto] | None:
    """Rewrites MeanVarianceNormalization with the variance as the mean of squared distances. A
    difference of two means would cancel for values far from zero."""
    data = view.type_of(node.input[0])
    if data is None:
        return None
    new, axes = Replacement(node), attribute(node, "axes", [0, 2, 3])
    mean = new.add_reduction("ReduceMean", node.input[0], axes, view.opset)
    distance = new.add("Sub", [node.input[0], mean])
    squares = new.add("Mul", [distance, distance])
    deviation = new.add("Sqrt", [new.add_reduction("ReduceMean", squares, axes, view.opset)])
    divisor = new.add("Add", [deviation, new.constant(_LEAST_DEVIATION, data.dtype)])
    new.add("Div", [distance, divisor], to=node.output[0])
    return new.nodes


def of_flat_rows(node: onnx.NodeProto, view: GraphView) -> list[onnx.NodeProto] | None:
    """Rewrites a Hardmax of an operator set before 13, over all axes from its own on: ONNX's
    converter takes it for one over its axis alone."""
    data = view.type_of(node.input[0])
    if data is None:
        raise UnsupportedModelError("the shape of its input is not known")
    axis = attribute(node, "axis", 1) % data.rank
    new = Replacement(node)
    rows = new.add_reshape(
        node.input[0], [math.prod(data.shape[:axis]), math.prod(data.shape[axis:])]
    )
    new.add_reshape(new.add("Hardmax", [rows], axis=1), data.shape, to=node.output[0])
    return new.nodes


# Operators on single numbers that TVM computes differently from ONNX Runtime.


def quantize_in_float32(node: onnx.NodeProto, view: GraphView) -> list[onnx.NodeProto] | None:
    """Rewrites QuantizeLinear of float16 as one of float32, in which ONNX Runtime divides and
    rounds; float16 lacks the last number of uint16. Raises UnsupportedModelError for a scale of
    0: what infinity and NaN are as whole numbers goes by the processor."""
    data, scale = view.type_of(node.input[0]), view.constant(node.input[1])
    if scale is not None and not scale.all():
        raise UnsupportedModelError("its scale is 0")
    if data is None or data.dtype != np.float16:
        return None
    new, in_float32 = Replacement(node), onnx.NodeProto()
    in_float32.CopyFrom(node)
    in_float32.input[:2] = [new.cast(name, onnx.TensorProto.FLOAT) for name in node.input[:2]]
    return [*new.nodes, in_float32]


def scattered_bits(node: onnx.NodeProto, view: GraphView) -> list[onnx.NodeProto] | None:
    """Rewrites a scatter that adds or multiplies booleans, as one of whole numbers."""
    data = view.type_of(node.input[0])
    is_plain = attribute(node, "reduction", "none") == "none"
    if is_plain or data is None or data.dtype.kind != "b":
        return None
    new = Replacement(node)
    whole, updates = (new.cast(node.input[at], onnx.TensorProto.INT32) for at in (0, 2))
    sums = new.add(node.op_type, [whole, node.input[1], updates], **attributes_of(node))
    new.cast(sums, onnx.TensorProto.BOOL, to=node.output[0])
    return new.nodes


def infinite(node: onnx.NodeProto, view: GraphView) -> list[onnx.NodeProto] | None:
    """Rewrites IsInf of one sign."""
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


_PRODUCTS = (2, 3)


def power(node: onnx.NodeProto, view: GraphView) -> list[onnx.NodeProto] | None:
    """Rewrites Pow of integers as ONNX Runtime computes it, as products for one constant exponent
    of 2 or 3 and else in float64, and Pow of two types."""
    base, exponent = (view.type_of(name) for name in node.input)
    if base is None or exponent is None:
        return None
    is_whole = base.dtype.kind in "iu"
    if not is_whole and base.elements == exponent.elements:
        return None
    new = Replacement(node)
    value = view.constant(node.input[1])
    if is_whole and value is not None and value.size == 1 and value.item() in _PRODUCTS:
        ones = new.constant(np.ones(value.shape), base.dtype)  # for the shape of the result
        product = new.add("Mul", [node.input[0], ones])
        for _ in range(int(value.item()) - 1):
            product = new.add("Mul", [product, node.input[0]])
        new.add("Identity", [product], to=node.output[0])
        return new.nodes
    kind = onnx.TensorProto.DOUBLE if is_whole else base.elements
    powers = new.add("Pow", [new.cast(name, kind) for name in node.input])
    new.cast(powers, base.elements, to=node.output[0])
    return new.nodes
