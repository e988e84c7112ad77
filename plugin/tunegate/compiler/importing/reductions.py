"""Rewrites reductions, running sums, and operators that pick or mark positions of a tensor."""

import math
from collections.abc import Sequence
from itertools import combinations

import numpy as np
import onnx

from tunegate.compiler.importing import graph_view
from tunegate.errors import UnsupportedModelError
from tunegate.models.inputs.constants import attributes_of

# Rewrites reductions over axes that are a model input, and reductions of empty tensors.

_PLAIN = ("Max", "Min", "Sum", "Mean", "Prod")
_BY_FORMULA = ("LogSumExp", "LogSum", "SumSquare", "L1", "L2")
REDUCTIONS = frozenset(f"Reduce{name}" for name in (*_PLAIN, *_BY_FORMULA))
_OF_NOTHING = {
    "ReduceProd": 1.0,
    "ReduceLogSum": -np.inf,
    "ReduceLogSumExp": -np.inf,
}
_OF_ONE = {
    "ReduceSumSquare": "Mul",
    "ReduceLogSum": "Log",
    **dict.fromkeys(("ReduceL1", "ReduceL2"), "Abs"),
}
"""The operators on single numbers that these are over no axes."""
_MOST_SETS = 64
"""The most sets of axes of which one is chosen at run time: each is a reduction."""
_BY_FRACTIONS = frozenset({"ReduceMean", "ReduceL2", "ReduceLogSum", "ReduceLogSumExp"})


def rewrite_reduction(
    node: onnx.NodeProto, view: graph_view.GraphView
) -> list[onnx.NodeProto] | None:
    """Returns the reduction over the axes that the result lacks. If several sets of axes leave the
    same extents, the named one is selected at run time."""
    data, result = view.type_of(node.input[0]), view.type_of(node.output[0])
    if data is None or result is None:
        return None
    is_cut = 0 not in data.shape and data.dtype.kind in "iu" and node.op_type in _BY_FRACTIONS
    if 0 in data.shape or is_cut:
        return _reduce_to_whole(node, data) if is_cut else _reduce_empty(node, result)
    axes = graph_view.operand(node, 1)
    axes_type = view.type_of(axes) if axes else None
    is_empty = not axes or (axes_type is not None and 0 in axes_type.shape)
    if is_empty and graph_view.attribute(node, "noop_with_empty_axes", 0):
        return _of_single_numbers(node)
    if graph_view.attribute(node, "axes") == []:  # all axes, which TVM reads where none are named
        return [graph_view.without_attributes(node, {"axes"})]
    if axes_type is None or view.constant(axes) is not None:
        return None
    (count,) = axes_type.shape
    sets = _possible(data, result, count, is_kept=bool(graph_view.attribute(node, "keepdims", 1)))
    return _over_named_axes(node, data, result, sets) if sets else None


def _over_named_axes(
    node: onnx.NodeProto,
    data: graph_view.TensorType,
    result: graph_view.TensorType,
    sets: list[tuple[int, ...]],
) -> list[onnx.NodeProto]:
    """Returns the reduction over one of these sets of axes, which is is_named at run time."""
    new, weights = graph_view.Replacement(node), [0] * data.rank
    for place, axis in enumerate(_wide(data)):
        weights[axis] = 2**place
    first, *others = [_over(new, node, axes, result) for axes in sets]
    for axes, other in zip(sets[1:], others, strict=True):
        is_named = _names_axes(new, node.input[1], weights, axes)
        first = new.add("Where", [is_named, other, first])
    new.add("Identity", [first], to=node.output[0])
    return new.nodes


def extreme(node: onnx.NodeProto, view: graph_view.GraphView) -> list[onnx.NodeProto] | None:
    """Rewrites ReduceMax and ReduceMin. TVM begins with the largest finite number; if the result is
    compared, that of infinities alone must be infinite."""
    data = view.type_of(node.input[0])
    if data is not None and data.dtype.kind == "b":
        return _reduce_through(node, onnx.TensorProto.INT32, data.elements)
    instead = rewrite_reduction(node, view)
    if instead is not None or data is None or data.dtype.kind != "f":
        return instead
    if not view.users_of(node.output[0]) & {"Equal", "IsInf"}:
        return None
    new = graph_view.Replacement(node)
    options = attributes_of(node)
    limit = new.constant(-np.inf if node.op_type == "ReduceMax" else np.inf, data.dtype)
    is_limit = new.cast(new.add("Equal", [node.input[0], limit]), onnx.TensorProto.INT32)
    are_all = new.add("ReduceMin", [is_limit, *node.input[1:]], **options)
    finite = new.add(node.op_type, node.input, **options)
    is_endless = new.cast(are_all, onnx.TensorProto.BOOL)
    new.add("Where", [is_endless, limit, finite], to=node.output[0])
    return new.nodes


def cumulative(node: onnx.NodeProto, view: graph_view.GraphView) -> list[onnx.NodeProto] | None:
    """Returns CumSum and CumProd along an axis that is an input: computed along each axis, and the
    named one is selected."""
    data = view.type_of(node.input[0])
    if data is None or view.constant(node.input[1]) is not None or not data.rank:
        return None
    new = graph_view.Replacement(node)
    options = {name: graph_view.attribute(node, name, 0) for name in ("exclusive", "reverse")}
    axis = new.add_reshape(new.cast(node.input[1], onnx.TensorProto.INT64), [1])
    value = node.input[0]
    for number in range(data.rank):
        along = new.add(node.op_type, [node.input[0], new.constant(number, np.int64)], **options)
        is_named = _names_axes(new, axis, range(data.rank), (number,))
        value = new.add("Where", [is_named, along, value])
    new.add("Identity", [value], to=node.output[0])
    return new.nodes


def _possible(
    data: graph_view.TensorType, result: graph_view.TensorType, count: int, *, is_kept: bool
) -> list[tuple[int, ...]]:
    """Returns the sets of axes whose reduction gives the result's extents; sets that differ in axes
    of extent 1 are one. Raises UnsupportedModelError if they may be too many."""
    wide, wide_after = _wide(data), _wide(result)
    missing = max(len(wide) - len(wide_after), 0)
    choices = math.comb(len(wide), missing)
    if choices > _MOST_SETS:
        raise UnsupportedModelError(f"its axes are an input, one of {choices:,} sets")
    narrow = [axis for axis, extent in enumerate(data.shape) if extent == 1]
    rest = narrow[: (count or data.rank) - missing]
    extents = [result.shape[axis] for axis in wide_after]
    return [
        tuple(sorted((*axes, *rest)))
        for axes in combinations(wide, missing)
        if [data.shape[axis] for axis in wide if axis not in axes] == extents
        and not (is_kept and any(axis in axes for axis in wide_after))
    ]


def _wide(kind: graph_view.TensorType) -> list[int]:
    return [axis for axis, extent in enumerate(kind.shape) if extent > 1]


def _of_single_numbers(node: onnx.NodeProto) -> list[onnx.NodeProto]:
    """Replaces a reduction over no axes by what it makes of each number."""
    x, *more = node.input[:1] * (2 if node.op_type == "ReduceSumSquare" else 1)
    operator = _OF_ONE.get(node.op_type, "Identity")
    return [onnx.helper.make_node(operator, [x, *more], node.output, name=node.name)]


def _over(
    new: graph_view.Replacement,
    node: onnx.NodeProto,
    axes: tuple[int, ...],
    result: graph_view.TensorType,
) -> str:
    keepdims = graph_view.attribute(node, "keepdims", 1)
    value = new.add(node.op_type, [node.input[0], new.constant(axes, np.int64)], keepdims=keepdims)
    # Without them, axes of extent 1 may lie between others.
    return value if keepdims else new.add_reshape(value, result.shape)


def _names_axes(
    new: graph_view.Replacement, axes: str, weights: Sequence[int], reduced_axes: tuple[int, ...]
) -> str:
    """Returns a boolean graph value: whether the input names these axes, in any order, counted from
    either end. The sum of the `weights` of its axes tells a set from the others."""
    count = new.constant(len(weights), np.int64)
    place = new.add("Mod", [new.add("Add", [axes, count]), count])
    numbers = new.add("Gather", [new.constant(weights, np.int64), place])
    sums = new.add("ReduceSum", [numbers, new.constant([0], np.int64)], keepdims=0)
    return new.add("Equal", [sums, new.constant(sum(weights[a] for a in reduced_axes), np.int64)])


def _reduce_to_whole(node: onnx.NodeProto, data: graph_view.TensorType) -> list[onnx.NodeProto]:
    """Reduces whole numbers as fractions, and cuts the result. Raises UnsupportedModelError where
    ONNX Runtime also cuts on the way."""
    if node.op_type == "ReduceLogSumExp":
        raise UnsupportedModelError(f"its numbers are {data.dtype}")
    return _reduce_through(node, onnx.TensorProto.DOUBLE, data.elements)


def _reduce_through(node: onnx.NodeProto, kind: int, result: int) -> list[onnx.NodeProto]:
    """Reduces in another type. TVM has no minimum or maximum of booleans, and makes int64 of the
    mean of other whole numbers."""
    new = graph_view.Replacement(node)
    options = attributes_of(node)
    numbers = new.cast(node.input[0], kind)
    reduced_numbers = new.add(node.op_type, [numbers, *node.input[1:]], **options)
    new.cast(reduced_numbers, result, to=node.output[0])
    return new.nodes


def _reduce_empty(node: onnx.NodeProto, result: graph_view.TensorType) -> list[onnx.NodeProto]:
    """Returns the nodes for a reduction of an empty tensor. Raises UnsupportedModelError if the
    result is empty too: the compiler cannot load such a constant."""
    if 0 in result.shape:
        raise UnsupportedModelError(f"{node.op_type} to no elements is not supported")
    value = _OF_NOTHING.get(node.op_type, 0.0)
    if node.op_type in {"ReduceMin", "ReduceMax"}:
        value = _farthest(result.dtype, is_largest=node.op_type == "ReduceMin")
    new = graph_view.Replacement(node)
    new.constant(np.full(result.shape, value, result.dtype), to=node.output[0])
    return new.nodes


def _farthest(dtype: np.dtype, *, is_largest: bool) -> float:
    if dtype.kind == "f":
        return np.inf if is_largest else -np.inf
    limits = np.iinfo(dtype)
    return limits.max if is_largest else limits.min


# Operators that pick or mark positions of a tensor.

_TRAINING = 2
_MANY = 2**20
"""More numbers are better computed than kept."""
_MASK_IS_BOOL, _MASK_IS_KEPT = 10, 12
"""From these operator sets on, a mask is boolean, and true where a number is kept."""


def one_hot(node: onnx.NodeProto, view: graph_view.GraphView) -> list[onnx.NodeProto] | None:
    """Rewrites every OneHot: the importer takes only constants, and returns float64 or int64
    whatever the type of the values."""
    indices, result = view.type_of(node.input[0]), view.type_of(node.output[0])
    if indices is None or result is None:
        return None
    axis = graph_view.attribute(node, "axis", -1) % result.rank
    depth = result.shape[axis]
    new = graph_view.Replacement(node)
    shape = [*indices.shape[:axis], 1, *indices.shape[axis:]]
    place = new.add_reshape(new.cast(node.input[0], onnx.TensorProto.INT64), shape)
    from_end = new.add("Less", [place, new.constant(0, np.int64)])
    place = new.add(
        "Where", [from_end, new.add("Add", [place, new.constant(depth, np.int64)]), place]
    )
    every = new.constant(np.arange(depth).reshape([-1] + [1] * (result.rank - axis - 1)), np.int64)
    off, on = (new.add_slice(node.input[2], 0, number, number + 1) for number in (0, 1))
    new.add("Where", [new.add("Equal", [place, every]), on, off], to=node.output[0])
    return new.nodes


def diagonal_of_ones(
    node: onnx.NodeProto, view: graph_view.GraphView
) -> list[onnx.NodeProto] | None:
    """EyeLike, whose type TVM takes from its input alone: a constant."""
    result = view.type_of(node.output[0])
    if result is None or result.dtype.kind not in "fiub" or math.prod(result.shape) > _MANY:
        return None
    new = graph_view.Replacement(node)
    rows, columns = result.shape
    ones = np.eye(rows, columns, k=graph_view.attribute(node, "k", 0))
    new.constant(ones, result.dtype, to=node.output[0])
    return new.nodes


def triangle(node: onnx.NodeProto, view: graph_view.GraphView) -> list[onnx.NodeProto] | None:
    """Rewrites Trilu with a diagonal that is an input."""
    data = view.type_of(node.input[0])
    diagonal = graph_view.operand(node, 1)
    if data is None or not diagonal or view.constant(diagonal) is not None:
        return None
    rows, columns = data.shape[-2:]
    offsets = np.arange(columns)[None, :] - np.arange(rows)[:, None]
    new = graph_view.Replacement(node)
    least = new.add_reshape(diagonal, [1, 1])
    if graph_view.attribute(node, "upper", 1):
        is_outside = new.add("Less", [new.constant(offsets, np.int64), least])
    else:
        is_outside = new.add("Less", [least, new.constant(offsets, np.int64)])
    zero = new.constant(0, data.dtype)
    new.add("Where", [is_outside, zero, node.input[0]], to=node.output[0])
    return new.nodes


def rewrite_dropout_mask(
    node: onnx.NodeProto, view: graph_view.GraphView
) -> list[onnx.NodeProto] | None:
    """Rewrites Dropout in inference with its mask as an output: all true, and all zero before
    operator set 12. Raises UnsupportedModelError in training, or where that is an input: TVM would
    keep everything."""
    data, training = view.type_of(node.input[0]), graph_view.operand(node, _TRAINING)
    flag = view.constant(training) if training else np.zeros(1)
    if flag is None:
        raise UnsupportedModelError("whether it is training is an input")
    if flag.any():
        raise UnsupportedModelError("it is training, and drops at random")
    if data is None or not any(node.output[1:]):
        return None
    new = graph_view.Replacement(node)
    if node.output[0]:
        new.add("Identity", node.input[:1], to=node.output[0])
    dtype = data.dtype if view.opset < _MASK_IS_BOOL else np.bool_
    new.constant(np.full(data.shape, view.opset >= _MASK_IS_KEPT), dtype, to=node.output[1])
    return new.nodes


def picked_features(
    node: onnx.NodeProto, view: graph_view.GraphView
) -> list[onnx.NodeProto] | None:
    """Rewrites ArrayFeatureExtractor: selects positions of the last axis."""
    data, result = view.type_of(node.input[0]), view.type_of(node.output[0])
    if data is None or result is None:
        return None
    new = graph_view.Replacement(node)
    places = new.add_reshape(node.input[1], [-1])
    features = new.add("Gather", [node.input[0], places], axis=data.rank - 1)
    new.add_reshape(features, result.shape, to=node.output[0])
    return new.nodes


def kept_slices(node: onnx.NodeProto, view: graph_view.GraphView) -> list[onnx.NodeProto] | None:
    """Rewrites Compress by a constant, which may end before the axis does."""
    data, condition = view.type_of(node.input[0]), view.constant(node.input[1])
    if data is None or condition is None:
        return None
    new, axis, x = graph_view.Replacement(node), graph_view.attribute(node, "axis"), node.input[0]
    if axis is None:
        x = new.add_reshape(x, [-1])
    places = np.flatnonzero(
        condition[: math.prod(data.shape) if axis is None else data.shape[axis]]
    )
    if not places.size:
        raise UnsupportedModelError("its result is empty")
    new.add("Gather", [x, new.constant(places, np.int64)], axis=axis or 0, to=node.output[0])
    return new.nodes
