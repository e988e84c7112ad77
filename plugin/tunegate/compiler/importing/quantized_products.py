"""Rewrites products of quantized numbers: integer products, then scaled and rounded."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import onnx

from tunegate.compiler.importing import graph_view
from tunegate.errors import UnsupportedModelError
from tunegate.models.inputs.constants import attributes_of

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


def rewrite_matrix_product(
    node: onnx.NodeProto, view: graph_view.GraphView
) -> list[onnx.NodeProto] | None:
    """Rewrites QLinearMatMul. Scales may be per column of the second matrix."""
    operands = _operands(node, view)
    if operands is None or operands.size(_B_SCALE) != operands.size(_B_ZERO):
        return None
    new = graph_view.Replacement(node)
    zeros = [operands.flat(new, _A_ZERO), _zero_of_b(new, operands, view)]
    sums = new.add("MatMulInteger", [node.input[_A], node.input[_B], *zeros])
    _add_rescaling(new, operands, sums, [], to=node.output[0])
    return new.nodes


def rewrite_convolution(
    node: onnx.NodeProto, view: graph_view.GraphView
) -> list[onnx.NodeProto] | None:
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


def rewrite_matmul_integer(
    node: onnx.NodeProto, view: graph_view.GraphView
) -> list[onnx.NodeProto] | None:
    """Rewrites MatMulInteger with vectors of one zero point, which TVM takes for a matrix beside a
    vector."""
    new, product = graph_view.Replacement(node), graph_view.copy_of(node)
    for place, name in enumerate(node.input):
        kind = view.type_of(name)
        if place > 1 and kind is not None and kind.shape == (1,):
            product.input[place] = new.add_reshape(name, [])
    return [*new.nodes, product] if new.nodes else None


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
        message = f"its {kind.dtype.name} numbers, scales and zero points must be constants"
        raise UnsupportedModelError(message)
    axis = graph_view.attribute(node, "axis", _SCALED_ALONG) % max(1, weights.ndim)
    scales, zeros = (_spread_over_blocks(each, node, axis, weights.shape) for each in (scale, zero))
    floats = (weights.astype(np.float32) - zeros.astype(np.float32)) * scales.astype(np.float32)
    new, result = graph_view.Replacement(node), view.type_of(node.output[0])
    new.constant(floats, result.dtype if result else scale.dtype, to=node.output[0])
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


def rewrite_dynamic_quantization(
    node: onnx.NodeProto, view: graph_view.GraphView
) -> list[onnx.NodeProto] | None:
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
    zero_point = new.add("Round", [exact])
    new.cast(zero_point, onnx.TensorProto.UINT8, to=outputs[2] or None)
    codes = new.add("Add", [new.add("Round", [new.add("Div", [x, scale])]), zero_point])
    new.cast(new.add("Clip", [codes, zero, most]), onnx.TensorProto.UINT8, to=outputs[0])
    return new.nodes


def _add_rescaling(
    new: graph_view.Replacement, operands: _Operands, sums: str, trailing: list[int], *, to: str
) -> None:
    """Adds the node's output: sums times scales, rounded to the nearest even number."""
    scales = [operands.flat(new, _A_SCALE), operands.flat(new, _B_SCALE, trailing)]
    factor = new.add("Div", [new.add("Mul", scales), operands.flat(new, _SCALE)])
    exact = new.add("Mul", [new.cast(sums, onnx.TensorProto.FLOAT), factor])
    point = new.cast(operands.flat(new, _ZERO), onnx.TensorProto.FLOAT)
    codes = new.add("Add", [new.add("Round", [exact]), point])
    kind = operands.types[_ZERO]
    limits = np.iinfo(kind.dtype)
    bounds = [new.constant(value, np.float32) for value in (limits.min, limits.max)]
    new.cast(new.add("Clip", [codes, *bounds]), kind.elements, to=to)


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
