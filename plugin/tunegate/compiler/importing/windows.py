"""Rewrites operators that read windows of a tensor: Slice, Pad and RoiAlign. Source positions that
are model inputs are computed at run time, where the result has known extents."""

from typing import NamedTuple

import numpy as np
import onnx

from tunegate.compiler.importing import graph_view
from tunegate.errors import UnsupportedModelError


class _Window(NamedTuple):
    data: graph_view.TensorType
    result: graph_view.TensorType


def rewrite_slice(node: onnx.NodeProto, view: graph_view.GraphView) -> list[onnx.NodeProto] | None:
    """Rewrites Slice by inputs. Raises UnsupportedModelError for constant bounds that cross: TVM
    rejects them."""
    if _is_crossed(node, view):
        raise UnsupportedModelError("its result is empty")
    window = _window(node, view, operands=(1, 2, 3, 4))
    count = _length(graph_view.operand(node, 1), view)
    if window is None or count is None:
        return None
    new = graph_view.Replacement(node)
    spread = _Spread(new, window.data.rank, graph_view.operand(node, 3), count)
    starts = spread.over_axes(node.input[1], 0)
    steps = spread.over_axes(graph_view.operand(node, 4) or new.constant([1] * count, np.int64), 1)
    extents = new.constant(window.data.shape, np.int64)
    zero = new.constant(0, np.int64)
    is_back = new.add("Less", [steps, zero])
    last = new.add(
        "Where", [is_back, new.add("Sub", [extents, new.constant(1, np.int64)]), extents]
    )
    from_end = new.add("Less", [starts, zero])
    starts = new.add("Where", [from_end, new.add("Add", [starts, extents]), starts])
    starts = new.add("Min", [new.add("Max", [starts, zero]), last])
    value = node.input[0]
    for axis, extent in enumerate(window.result.shape):
        places = new.add("Mul", [_range(new, extent), _entry(new, steps, axis)])
        places = new.add("Add", [places, _entry(new, starts, axis)])
        value = _gather_clamped(new, value, places, axis, window.data.shape[axis])
    new.add("Identity", [value], to=node.output[0])
    return new.nodes


def _is_crossed(node: onnx.NodeProto, view: graph_view.GraphView) -> bool:
    """Returns whether an axis ends before it begins, as its steps go."""
    data = view.type_of(node.input[0])
    starts, ends, axes, steps = (
        view.constant(graph_view.operand(node, place)) for place in (1, 2, 3, 4)
    )
    if data is None or starts is None or ends is None:
        return False
    axes = np.arange(starts.size) if axes is None else axes.ravel()
    steps = np.ones(starts.size, int) if steps is None else steps.ravel()
    for start, end, axis, step in zip(starts.ravel(), ends.ravel(), axes, steps, strict=False):
        first, last, _ = slice(int(start), int(end), int(step)).indices(data.shape[int(axis)])
        if (last - first) * int(step) < 0:
            return True
    return False


def rewrite_pad(node: onnx.NodeProto, view: graph_view.GraphView) -> list[onnx.NodeProto] | None:
    """Rewrites Pad by inputs, or with a number that is an input, and one that wraps more than once,
    where TVM reads outside of the tensor."""
    mode = graph_view.attribute(node, "mode", "constant")
    pads = view.constant(graph_view.operand(node, 1))
    if mode == "wrap" and pads is not None:
        return _wrapping_pad(node, view, pads.reshape(2, -1))
    window = _window(node, view, operands=(1, 2, 3))
    count = _length(graph_view.operand(node, 1), view)
    if window is None or count is None or 0 in window.data.shape:
        return None
    new = graph_view.Replacement(node)
    spread = _Spread(new, window.data.rank, graph_view.operand(node, 3), count // 2)
    begins = spread.over_axes(new.add_slice(node.input[1], 0, 0, count // 2), 0)
    value, inside = node.input[0], []
    for axis, extent in enumerate(window.result.shape):
        places = new.add("Sub", [_range(new, extent), _entry(new, begins, axis)])
        size = window.data.shape[axis]
        if mode == "constant":
            inside.append(_is_inside(new, places, size, window.result.rank - axis - 1))
        elif size > 1 and mode in {"reflect", "wrap"}:
            places = _folded_back(new, places, size, is_mirror=mode == "reflect")
        value = _gather_clamped(new, value, places, axis, size)
    if mode == "constant":
        fill = graph_view.operand(node, 2) or new.constant(0, window.data.dtype)
        for mask in inside:
            value = new.add("Where", [mask, value, fill])
    new.add("Identity", [value], to=node.output[0])
    return new.nodes


def _wrapping_pad(
    node: onnx.NodeProto, view: graph_view.GraphView, pads: np.ndarray
) -> list[onnx.NodeProto] | None:
    """Rewrites a Pad that wraps more than the axis, or also cuts it, which comes first."""
    data, axes = view.type_of(node.input[0]), graph_view.operand(node, 3)
    numbers = view.constant(axes) if axes else np.arange(pads.shape[1])
    if data is None or numbers is None:
        raise UnsupportedModelError("its axes or extents are not known")
    gathers, is_plain = [], True
    for axis, begin, end in zip(numbers.tolist(), *pads.tolist(), strict=True):
        extent = data.shape[axis]
        is_plain = is_plain and 0 <= begin <= extent and 0 <= end <= extent
        inner = np.arange(extent)[max(-begin, 0) : extent - max(-end, 0)]
        if not inner.size:
            raise UnsupportedModelError("it wraps nothing")
        places = np.arange(-max(begin, 0), inner.size + max(end, 0)) % inner.size
        gathers.append((axis, inner[places]))
    if is_plain:
        return None  # TVM's own Pad does it
    new, value = graph_view.Replacement(node), node.input[0]
    for axis, places in gathers:
        value = new.add("Gather", [value, new.constant(places, np.int64)], axis=axis)
    new.add("Identity", [value], to=node.output[0])
    return new.nodes


class _Spread:
    """Operands given for some axes, spread over all."""

    def __init__(self, new: graph_view.Replacement, rank: int, axes: str, count: int) -> None:
        self._new, self._rank, self._count = new, rank, count
        axis_numbers = new.cast(
            axes or new.constant(range(count), np.int64), onnx.TensorProto.INT64
        )
        modulus = new.constant(rank, np.int64)
        place = new.add("Mod", [new.add("Add", [axis_numbers, modulus]), modulus])
        every = new.constant(np.arange(rank).reshape(rank, 1), np.int64)
        self._is_axis = new.add("Equal", [new.add_reshape(place, [1, count]), every])

    def over_axes(self, values: str, default: int) -> str:
        """Returns the value of each axis or the default, `[rank]`."""
        new = self._new
        row = new.add_reshape(new.cast(values, onnx.TensorProto.INT64), [1, self._count])
        spread = new.constant([[default]] * self._rank, np.int64)
        for place in range(self._count):
            column = new.add_slice(self._is_axis, 1, place, place + 1)
            spread = new.add("Where", [column, new.add_slice(row, 1, place, place + 1), spread])
        return new.add_reshape(spread, [self._rank])


def _window(
    node: onnx.NodeProto, view: graph_view.GraphView, operands: tuple[int, ...]
) -> _Window | None:
    """Returns the extents before and after; None if all operands are constant, or an extent is
    unknown."""
    names = [name for name in (graph_view.operand(node, place) for place in operands) if name]
    data, result = view.type_of(node.input[0]), view.type_of(node.output[0])
    if data is None or result is None or all(view.constant(n) is not None for n in names):
        return None
    return _Window(data, result)


def _length(name: str, view: graph_view.GraphView) -> int | None:
    """Returns the length of a one-dimensional operand, None if unknown."""
    kind = view.type_of(name)
    return kind.shape[0] if kind is not None and kind.rank == 1 else None


def _range(new: graph_view.Replacement, count: int) -> str:
    return new.constant(range(count), np.int64)


def _entry(new: graph_view.Replacement, values: str, axis: int) -> str:
    return new.add_slice(values, 0, axis, axis + 1)


def _gather_clamped(
    new: graph_view.Replacement, value: str, places: str, axis: int, extent: int
) -> str:
    """Returns the elements at these positions of an axis; a position outside reads the nearest
    element."""
    last = new.constant(max(extent - 1, 0), np.int64)
    within = new.add("Min", [new.add("Max", [places, new.constant(0, np.int64)]), last])
    return new.add("Gather", [value, within], axis=axis)


def _is_inside(new: graph_view.Replacement, places: str, extent: int, trailing: int) -> str:
    """Returns a boolean graph value: whether a position is inside the tensor, broadcast over the
    axes behind."""
    low = new.add("Less", [new.constant(-1, np.int64), places])
    high = new.add("Less", [places, new.constant(extent, np.int64)])
    return new.add_reshape(new.add("And", [low, high]), [-1] + [1] * trailing)


def _folded_back(new: graph_view.Replacement, places: str, extent: int, *, is_mirror: bool) -> str:
    period = new.constant(2 * (extent - 1) if is_mirror else extent, np.int64)
    place = new.add("Mod", [places, period])
    if not is_mirror:
        return place
    is_behind = new.add("Less", [new.constant(extent - 1, np.int64), place])
    return new.add("Where", [is_behind, new.add("Sub", [period, place]), place])


def rewrite_roi_align(
    node: onnx.NodeProto, view: graph_view.GraphView
) -> list[onnx.NodeProto] | None:
    """Rewrites RoiAlign with the regions scaled before: TVM moves them by half a pixel first.
    Raises UnsupportedModelError for the largest of samples, of which ONNX takes shares."""
    if graph_view.attribute(node, "mode", "avg") == "max":
        raise UnsupportedModelError("it takes a maximum")
    scale, regions = graph_view.attribute(node, "spatial_scale", 1.0), view.type_of(node.input[1])
    if scale == 1:
        return None
    if regions is None:
        raise UnsupportedModelError("the type of its regions is not known")
    new, pooling = graph_view.Replacement(node), graph_view.copy_of(node)
    pooling.input[1] = new.add("Mul", [node.input[1], new.constant(scale, regions.dtype)])
    next(each for each in pooling.attribute if each.name == "spatial_scale").f = 1
    return [*new.nodes, pooling]
