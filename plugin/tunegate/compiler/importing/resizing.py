"""Rewrites Resize where TVM's own computes other numbers, or takes none: along each axis, a product
with a matrix, which is computed at run time if scales or sizes are model inputs."""

from typing import NamedTuple

import numpy as np
import onnx

from tunegate.compiler.importing import graph_view
from tunegate.compiler.importing.graph_view import GraphView, Replacement, attribute, operand
from tunegate.errors import UnsupportedModelError

_ROI, _SCALES, _SIZES = 1, 2, 3
_TAPS = (-1, 0, 1, 2)


class _Axis(NamedTuple):
    """One axis with `before` and then `after` elements; `places` (float32) are the source positions
    of the new elements."""

    number: int
    before: int
    after: int
    places: str


def rewrite_resize(node: onnx.NodeProto, view: GraphView) -> list[onnx.NodeProto] | None:
    """Returns the nodes of a Resize, unless it is one that TVM computes as ONNX Runtime does: of
    float16 in float32, as ONNX Runtime does it. Beside sizes, scales without elements are dropped.
    Raises UnsupportedModelError for antialiasing, and for an interpolation between whole numbers
    that TVM computes otherwise."""
    # What TVM takes as it is, and what neither can compute.
    if operand(node, _SIZES) and _has_no_elements(operand(node, _SCALES), view):
        by_sizes = graph_view.copy_of(node)
        by_sizes.input[_SCALES] = ""
        return [by_sizes]
    data, result = view.type_of(node.input[0]), view.type_of(node.output[0])
    if data is None or result is None:
        return None
    if attribute(node, "antialias", 0) and result.shape != data.shape:
        raise UnsupportedModelError("it has antialiasing")  # TVM leaves it out
    if _is_known(node, view) and _is_of_tvm(node, view, data, result):
        return None
    # The others: one axis after the other, each by a product with a matrix of its weights, or by
    # picking its nearest elements. Whole numbers can only be picked.
    is_picked = attribute(node, "mode", "nearest") == "nearest"
    if not is_picked and data.dtype not in (np.float32, np.float16):
        raise UnsupportedModelError(f"{data.dtype} is resized only in images, by scales that fit")
    axes = attribute(node, "axes", list(range(data.rank)))
    work = _Resizing(node, len(axes), data.dtype if is_picked else np.dtype(np.float32))
    scales = work.scales([data.shape[axis] for axis in axes], [result.shape[a] for a in axes])
    constant_scales = view.constant(operand(node, _SCALES)) if operand(node, _SCALES) else None
    is_stretched = attribute(node, "keep_aspect_ratio_policy", "stretch") == "stretch"
    value = node.input[0]
    if data.dtype != work.dtype:
        value = work.new.cast(value, onnx.TensorProto.FLOAT)
    # An axis is left as it is only where its scale is 1 for sure: equal extents do not say so.
    for place, axis in enumerate(axes):
        sizes = data.shape[axis], result.shape[axis]
        is_whole = (
            constant_scales[place] == 1
            if constant_scales is not None
            else operand(node, _SIZES) and is_stretched
        )
        if sizes[0] == sizes[1] and is_whole:  # as batch and channels are
            continue
        places = work.places(work.new.add_slice(scales, 0, place, place + 1), *sizes, place)
        value = work.along(value, _Axis(axis % data.rank, *sizes, places), data.rank)
    if data.dtype == work.dtype:
        work.new.add("Identity", [value], to=node.output[0])
    else:
        work.new.cast(value, data.elements, to=node.output[0])
    return work.new.nodes


def as_written_before(node: onnx.NodeProto, view: GraphView) -> None:
    """Gives a Resize that was an Upsample, or a Resize before operator set 11, the attributes of
    what it was: ONNX's converter leaves them out, and their defaults compute other numbers. Raises
    UnsupportedModelError for one that no attributes describe."""
    scales = view.constant(operand(node, _SCALES))
    attributes = {"coordinate_transformation_mode": "asymmetric"}
    if attribute(node, "mode", "nearest") == "nearest":
        if scales is None or ((scales > 1).any() and (scales < 1).any()):
            raise UnsupportedModelError("it may shrink one axis and stretch another")
        attributes["nearest_mode"] = "ceil" if (scales < 1).any() else "floor"
    node.attribute.extend(onnx.helper.make_attribute(*item) for item in attributes.items())


def refuse_upsample(node: onnx.NodeProto, view: GraphView) -> list[onnx.NodeProto] | None:
    """Raises UnsupportedModelError for an Upsample, which is a Resize after the conversion."""
    raise UnsupportedModelError("ONNX does not convert the model to a newer operator set")


def _has_no_elements(name: str, view: GraphView) -> bool:
    kind = view.type_of(name) if name else None
    return kind is not None and 0 in kind.shape


def _is_known(node: onnx.NodeProto, view: GraphView) -> bool:
    names = [name for name in node.input[_ROI:] if name]
    return all(view.constant(name) is not None for name in names)


_COORDINATES = frozenset({"half_pixel", "pytorch_half_pixel", "align_corners", "asymmetric"})
_IMAGE_RANK = 4


def _is_of_tvm(
    node: onnx.NodeProto,
    view: GraphView,
    data: graph_view.TensorType,
    result: graph_view.TensorType,
) -> bool:
    """Returns whether TVM computes it: an image whose rows and columns get new extents. TVM takes
    the quotient of the extents for the scale, so that one must be the other."""
    is_image = data.rank == _IMAGE_RANK and data.shape[:2] == result.shape[:2]
    coordinates = attribute(node, "coordinate_transformation_mode", "half_pixel")
    policy = attribute(node, "keep_aspect_ratio_policy", "stretch")
    if (
        not is_image
        or coordinates not in _COORDINATES
        or policy != "stretch"
        or attribute(node, "axes")
    ):
        return False
    if coordinates == "align_corners" and 1 in result.shape:  # TVM divides by the extent less one
        return False
    scales = view.constant(operand(node, _SCALES)) if operand(node, _SCALES) else None
    if scales is None:
        return True
    exact = np.array(data.shape, np.float32) * scales
    return bool((exact == np.array(result.shape, np.float32)).all())


class _Resizing:
    """The nodes of one Resize, as far as they are built, on numbers of a type."""

    def __init__(self, node: onnx.NodeProto, count_of_axes: int, dtype: np.dtype) -> None:
        self.new, self.dtype = Replacement(node), dtype
        self._node = node
        self._mode = attribute(node, "mode", "nearest")
        self._count_of_axes = count_of_axes
        self._coordinates = attribute(node, "coordinate_transformation_mode", "half_pixel")

    def scales(self, before: list[int], after: list[int]) -> str:
        """Returns one scale per axis."""
        new = self.new
        if not operand(self._node, _SIZES):
            return str(self._node.input[_SCALES])
        policy = attribute(self._node, "keep_aspect_ratio_policy", "stretch")
        if policy == "stretch":
            return new.constant(np.array(after, np.float32) / np.array(before, np.float32))
        sizes = new.cast(self._node.input[_SIZES], onnx.TensorProto.FLOAT)
        each = new.add("Div", [sizes, new.constant(before, np.float32)])
        kind = "ReduceMin" if policy == "not_larger" else "ReduceMax"
        common = new.add(kind, [each], keepdims=1)
        return new.add("Add", [common, new.constant([0] * len(before), np.float32)])

    def places(self, scale: str, before: int, after: int, place: int) -> str:
        """Returns the source positions of the new elements along an axis."""
        new, number = self.new, self._number
        count = new.constant(range(after), np.float32)
        match self._coordinates:
            case "align_corners":
                step = (before - 1) / (after - 1) if after > 1 else 0
                return new.add("Mul", [count, number(step)])
            case "asymmetric":
                return new.add("Div", [count, scale])
            case "tf_crop_and_resize":
                is_whole = new.add("Equal", [scale, number(1)])  # whatever the region says
                inside = self._crop_positions(count, before, after, place)
                return new.add("Where", [is_whole, count, inside])
            case "pytorch_half_pixel" if after == 1:
                return new.constant([0], np.float32)
        half = new.add("Div", [new.add("Add", [count, number(0.5)]), scale])
        half = new.add("Sub", [half, number(0.5)])
        if self._coordinates != "half_pixel_symmetric":
            return half
        exact = new.add("Mul", [scale, number(before)])
        rest = new.add("Sub", [number(1), new.add("Div", [number(after), exact])])
        return new.add("Add", [half, new.add("Mul", [number(before / 2), rest])])

    def along(self, value: str, axis: _Axis, rank: int) -> str:
        """Returns the value resized along one axis."""
        if self._mode == "nearest":
            places = self._inside(self._round(axis.places), axis.before)
            places = self.new.cast(places, onnx.TensorProto.INT64)
            nearest = self.new.add("Gather", [value, places], axis=axis.number)
            return self._fill_outside(nearest, axis, rank)
        order = [number for number in range(rank) if number != axis.number] + [axis.number]
        back = [order.index(number) for number in range(rank)]
        rows = self.new.add("Transpose", [value], perm=order)
        matrix = self._linear(axis) if self._mode == "linear" else self._cubic(axis)
        product = self.new.add("MatMul", [rows, matrix])
        result = self.new.add("Transpose", [product], perm=back)
        return self._fill_outside(result, axis, rank)

    def _crop_positions(self, count: str, before: int, after: int, place: int) -> str:
        """Returns positions inside a region whose ends are fractions of the axis."""
        new, number = self.new, self._number
        roi, last = self._node.input[_ROI], number(before - 1)
        start, end = (
            new.add_slice(roi, 0, at, at + 1) for at in (place, place + self._count_of_axes)
        )
        if after == 1:
            middle = new.add("Mul", [new.add("Add", [start, end]), number(0.5)])
            return new.add("Mul", [middle, last])
        step = new.add("Mul", [new.add("Sub", [end, start]), number((before - 1) / (after - 1))])
        return new.add("Add", [new.add("Mul", [start, last]), new.add("Mul", [count, step])])

    def _round(self, places: str) -> str:
        new, half = self.new, self._number(0.5)
        match attribute(self._node, "nearest_mode", "round_prefer_floor"):
            case "floor":
                return new.add("Floor", [places])
            case "ceil":
                return new.add("Ceil", [places])
            case "round_prefer_ceil":
                return new.add("Floor", [new.add("Add", [places, half])])
            case _:
                return new.add("Ceil", [new.add("Sub", [places, half])])

    def _linear(self, axis: _Axis) -> str:
        """Returns the interpolation weights, `[before, after]`."""
        new, places = self.new, self._inside(axis.places, axis.before)
        column = new.constant(np.arange(axis.before).reshape(-1, 1), np.float32)
        distance = new.add("Abs", [new.add("Sub", [column, places])])
        return new.add("Relu", [new.add("Sub", [self._number(1), distance])])

    def _cubic(self, axis: _Axis) -> str:
        """Returns the weights of the four nearest elements, `[before, after]`; those outside count
        as the last one inside, or as nothing."""
        new, first = self.new, self.new.add("Floor", [axis.places])
        is_outside_excluded = bool(attribute(self._node, "exclude_outside", 0))
        parts = []
        for tap in _TAPS:
            at = new.add("Add", [first, self._number(tap)])
            inside = self._inside(at, axis.before)
            weight = self._cubic_weight(
                new.add("Abs", [new.add("Sub", [axis.places, at])]), is_near=tap in {0, 1}
            )
            if is_outside_excluded:
                is_inside = new.cast(new.add("Equal", [at, inside]), onnx.TensorProto.FLOAT)
                weight = new.add("Mul", [weight, is_inside])
            column = new.constant(np.arange(axis.before).reshape(-1, 1), np.float32)
            is_there = new.cast(new.add("Equal", [column, inside]), onnx.TensorProto.FLOAT)
            parts.append(new.add("Mul", [is_there, weight]))
        matrix = new.add("Sum", parts)
        if not is_outside_excluded:
            return matrix
        ones = new.constant(np.ones((1, axis.before)), np.float32)
        return new.add("Div", [matrix, new.add("MatMul", [ones, matrix])])

    def _cubic_weight(self, distance: str, *, is_near: bool) -> str:
        """Returns Keys' cubic for a distance below 1, or from 1 to 2."""
        new, factor = self.new, attribute(self._node, "cubic_coeff_a", -0.75)
        terms = (
            (factor + 2, -(factor + 3), 0.0, 1.0)
            if is_near
            else (factor, -5 * factor, 8 * factor, -4 * factor)
        )
        value = self._number(terms[0])
        for term in terms[1:]:
            value = new.add("Add", [new.add("Mul", [value, distance]), self._number(term)])
        return value

    def _inside(self, places: str, before: int) -> str:
        bounds = [self._number(0), self._number(before - 1)]
        return self.new.add("Clip", [places, *bounds])

    def _fill_outside(self, value: str, axis: _Axis, rank: int) -> str:
        """Returns the value where the position is inside of the axis, else the fill; only crops lie
        outside."""
        if self._coordinates != "tf_crop_and_resize":
            return value
        new = self.new
        low = new.add("Less", [axis.places, self._number(0)])
        high = new.add("Less", [self._number(axis.before - 1), axis.places])
        is_outside = new.add_reshape(
            new.add("Or", [low, high]), [-1] + [1] * (rank - axis.number - 1)
        )
        number = attribute(self._node, "extrapolation_value", 0.0)
        fill = new.constant(number, self.dtype)
        return new.add("Where", [is_outside, fill, value])

    def _number(self, value: float) -> str:
        return self.new.constant(value, np.float32)
