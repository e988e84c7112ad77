"""Inputs that are sizes: shapes, extents, counts, bounds of slices, axes. They get what gives the
declared output, else small numbers that the operator takes. They are the same in each launch, as
the work depends on them."""

import math
from collections.abc import Callable, Iterator, Sequence
from itertools import combinations, islice
from typing import NamedTuple

import numpy as np

from tunegate.artifacts.inputs import Columns, Constant, InputRule
from tunegate.models.inputs.constants import attributes_of
from tunegate.models.inputs.dataflow import Dataflow, Dimensions, Use
from tunegate.models.inputs.trace import Trace, meetings_of
from tunegate.models.narrow_types import dtype_named, kind_of
from tunegate.models.seeded_inputs import TensorLike

_MAX_NUMBERS = 16
"""Twice the largest rank: pads are a pair for each axis."""
_USUAL = 16
_MOST_RESULTS = 50
_MOST_CHOICES = 1000
"""The most choices of axes to look at; a tensor of eight axes has at most 70."""
_KEEP_SHAPE = {"Identity", "Cast", "Relu", "Sigmoid", "Tanh", "Softmax", "Neg", "Abs", "Not"}
_DECLARED = "a size: the model declares the shape that it gives"
_REDUCTIONS = ("Sum", "Mean", "Max", "Min", "Prod", "L1", "L2", "LogSum", "LogSumExp", "SumSquare")

Number = float | None


class Sizes(NamedTuple):
    """The numbers of an operand, None where nothing is known. They are `sure` if others would
    contradict the model or be refused."""

    numbers: Sequence[Number]
    why: str
    sure: bool = False


class SizeRule(NamedTuple):
    """`sure` goes before what the input's name suggests."""

    rule: InputRule
    sure: bool


def size_rule(tensor: TensorLike, flow: Dataflow) -> SizeRule | None:
    """Returns the rule of an input that some operator takes as a size, None for others."""
    count = math.prod(tensor.shape)
    if not 0 < count <= _MAX_NUMBERS or len(tensor.shape) > 1:
        return None
    uses = sorted(_sizes_met(tensor, flow), key=lambda pair: not pair[1].sure)
    if not uses:
        return None
    is_whole = kind_of(dtype_named(tensor.dtype)) in "iu"
    numbers: dict[int, float] = {}
    for trace, sizes in uses:
        numbers_here = sizes.numbers[trace.component or 0 :]  # where the input is put into them
        for place, number in zip(_places(trace, count), numbers_here, strict=False):
            value = _of_input(number, trace, is_whole=is_whole)
            if value is not None:
                numbers.setdefault(place, value)
    if not numbers:
        return None
    parts = tuple(Constant(numbers.get(place, 1)) for place in range(count))
    is_one = len(set(parts)) == 1
    sizes = uses[0][1]
    return SizeRule(InputRule(parts[0] if is_one else Columns(0, parts), sizes.why), sizes.sure)


def _sizes_met(tensor: TensorLike, flow: Dataflow) -> Iterator[tuple[Trace, Sizes]]:
    for trace, use in meetings_of(tensor, flow):
        tell = _SIZE_RULES.get(use.step.op)
        sizes = tell(use, flow) if tell is not None else None
        if sizes is not None:
            yield trace, sizes


def _places(trace: Trace, count: int) -> Sequence[int]:
    """Returns which numbers of the input the traced value has."""
    return trace.columns.indices if trace.columns is not None else range(count)


def _of_input(number: Number, trace: Trace, *, is_whole: bool) -> float | None:
    """Returns the input at which the traced value is this number."""
    if number is None:
        return None
    value = (number - trace.offset) / trace.scale
    return round(value) if is_whole else float(value)


# What each operator says.


def declared_shape(name: str, flow: Dataflow) -> Dimensions | None:
    """Returns the shape that the model declares for a value, or for what is as large."""
    for _ in range(4):
        declared = flow.declared_shape(name)
        if declared is not None:
            return declared
        uses = flow.uses(name)
        if len(uses) != 1 or uses[0].step.op not in _KEEP_SHAPE:
            return None
        name = uses[0].step.outputs[0]
    return None


def _count(name: str, flow: Dataflow) -> int:
    """Returns how many numbers an operand has."""
    shape = flow.shape(name)
    return 1 if not shape else shape[0] or 0


def _declared_or_guess(declared: Sequence[Number], guess: Sequence[Number], why: str) -> Sizes:
    """Returns what is declared, and the guess where nothing is."""
    if not any(number is not None for number in declared):
        return Sizes(guess, f"a size: {why}")
    pairs = zip(declared, guess, strict=True)
    return Sizes([one if one is not None else other for one, other in pairs], _DECLARED, sure=True)


def _target(use: Use, flow: Dataflow, rank: int) -> Dimensions:
    """Returns the declared dimensions of the result if it has that rank."""
    declared = declared_shape(use.step.outputs[0], flow)
    return declared if declared is not None and len(declared) == rank else (None,) * rank


def _data(use: Use, flow: Dataflow) -> Dimensions:
    return flow.shape(use.step.inputs[0]) or ()


def _axes(use: Use, flow: Dataflow, position: int, count: int, rank: int) -> Sequence[int]:
    """Returns the axes of an operand's numbers: stated, or the first ones."""
    stated = attributes_of(use.step.node).get("axes")
    name = use.step.inputs[position] if len(use.step.inputs) > position else ""
    if name:
        stated = flow.constant(name)
    if stated is None or not rank:
        return range(count)
    return [int(axis) % rank for axis in np.ravel(stated)]


def _at(dims: Dimensions, axis: int) -> int | None:
    return dims[axis] if -len(dims) <= axis < len(dims) else None


def _shape_of_result(use: Use, flow: Dataflow) -> Sizes | None:
    """Finds the shape that is asked for: of Reshape, Expand and ConstantOfShape."""
    step, position = use
    is_fill = step.op == "ConstantOfShape"
    if position != (0 if is_fill else 1):
        return None
    rank = _count(step.inputs[position], flow)
    declared = declared_shape(step.outputs[0], flow)
    data: Dimensions = () if is_fill else _data(use, flow)
    if step.op == "Expand" and declared is not None:
        declared = declared[-rank:]  # what is left out in front is as it was
    target = declared if declared is not None and len(declared) == rank else (None,) * rank
    guess: Sequence[Number] = [*([1] * rank), *data][-rank:]
    if is_fill:
        guess = [_USUAL] * rank
    elif step.op == "Reshape":
        guess = list(data) if len(data) == rank else [*([1] * (rank - 1)), -1]
        target = tuple(-1 if d is None and target.count(None) == 1 else d for d in target)
    return _declared_or_guess(
        target, guess, "a usual one" if is_fill else "the shape that it has anyway"
    )


def _repeats(use: Use, flow: Dataflow) -> Sizes | None:
    if use.position != 1:
        return None
    data = _data(use, flow)
    target = _target(use, flow, len(data))
    every = [
        whole // one if whole and one else None for whole, one in zip(target, data, strict=True)
    ]
    return _declared_or_guess(every, [1] * len(data), "no repetition")


def _resize_operand(use: Use, flow: Dataflow) -> Sizes | None:
    """Finds the sizes or scales of Resize: twice the sides if none are declared."""
    step, position = use
    is_scales = position == 1 and (step.op == "Upsample" or len(step.inputs) == 2)  # noqa: PLR2004
    is_scales = is_scales or (position == 2 and step.op == "Resize")  # noqa: PLR2004
    data = _data(use, flow)
    if not data or not (is_scales or position == 3):  # noqa: PLR2004
        return None
    target = _target(use, flow, len(data))
    axes = _axes(use, flow, len(step.inputs), _count(step.inputs[position], flow), len(data))
    factors: list[Number] = [2 if axis > 1 else 1 for axis in axes]
    pairs = [(_at(data, axis), _at(target, axis)) for axis in axes]
    if is_scales:
        factors_by_axis = [whole / one if whole and one else None for one, whole in pairs]
        return _declared_or_guess(factors_by_axis, factors, "twice the sides")
    guess = [one and one * (by or 1) for (one, _), by in zip(pairs, factors, strict=True)]
    return _declared_or_guess([whole for _, whole in pairs], guess, "twice the sides")


def _slice(use: Use, flow: Dataflow) -> Sizes | None:
    """Finds the bounds of a slice: what is declared, or the whole axis."""
    step, position = use
    if position == 0:
        return None
    count, data = _count(step.inputs[position], flow), _data(use, flow)
    if position > 2:  # noqa: PLR2004
        return Sizes([*range(count)] if position == 3 else [1] * count, "a step or an axis")  # noqa: PLR2004
    axes = _axes(use, flow, 3, count, len(data))
    target = _target(use, flow, len(data))
    other = flow.constant(step.inputs[3 - position])
    steps = flow.constant(step.inputs[4]) if len(step.inputs) > 4 else None  # noqa: PLR2004
    numbers: list[Number] = []
    for place, axis in enumerate(axes):
        by = 1 if steps is None else int(np.ravel(steps)[place])
        long, whole = _at(target, axis), _at(data, axis)
        fixed = None if other is None else int(np.ravel(other)[place])
        if position == 1:
            end = _end_in_axis(fixed, whole)
            numbers.append(0 if end is None or long is None else end - long * by)
        else:
            numbers.append(whole if long is None else (fixed or 0) + long * by)
    why = "where a part of an axis " + ("begins" if position == 1 else "ends")
    return Sizes(numbers, why, sure=True)


def _end_in_axis(end: int | None, whole: int | None) -> int | None:
    """Returns where a slice ends, counted from the beginning of an axis of `whole` elements."""
    if end is None or whole is None:
        return end
    return min(end if end >= 0 else end + whole, whole)


def _pads(use: Use, flow: Dataflow) -> Sizes | None:
    step, position = use
    data = _data(use, flow)
    if not data or position not in {1, 3}:
        return None
    count = _count(step.inputs[position], flow)
    if position == 3:  # noqa: PLR2004
        return Sizes([*range(count)], "axes: the first ones")
    axes = _axes(use, flow, 3, count // 2, len(data))
    target = _target(use, flow, len(data))
    before: list[Number] = []
    after: list[Number] = []
    for axis in axes:
        whole, one = _at(target, axis), _at(data, axis)
        more = None if whole is None or one is None else whole - one
        before.append(None if more is None else more // 2)
        after.append(None if more is None else more - more // 2)
    guess = [float(len(data) < 3 or axis > 1) for axis in axes] * 2  # noqa: PLR2004
    return _declared_or_guess([*before, *after], guess, "one at each end of the sides")


def _parts(use: Use, flow: Dataflow) -> Sizes | None:
    """Finds the extents of a split: what its results declare, or equal ones."""
    step, position = use
    axis = attributes_of(step.node).get("axis", 0)
    whole = flow.dimension(step.inputs[0], axis)
    if position != 1 or whole is None:
        return None
    shape = flow.shape(step.inputs[1])
    count = _count(step.inputs[1], flow)
    if not shape:  # the extent of each part but the last
        return Sizes([max(1, whole // 2)], "half of the axis", sure=True)
    equal: list[Number] = [whole // count + (place < whole % count) for place in range(count)]
    dims = [declared_shape(name, flow) or () for name in step.outputs]
    sizes: list[Number] = [_at(dim, axis) for dim in dims]
    is_whole = None not in sizes and sum(size or 0 for size in sizes) == whole
    return Sizes(
        sizes if is_whole and len(sizes) == count else equal, "parts of an axis", sure=True
    )


def _top(use: Use, flow: Dataflow) -> Sizes | None:
    axis = attributes_of(use.step.node).get("axis", -1)
    whole = flow.dimension(use.step.inputs[0], axis)
    if use.position != 1 or whole is None:
        return None
    long = _at(declared_shape(use.step.outputs[0], flow) or (), axis)
    return Sizes([min(whole, long or _MOST_RESULTS)], "how many of an axis", sure=True)


def one_hot_depth(use: Use, flow: Dataflow) -> int:
    """Returns the classes of a one-hot coding: stated, declared or usual."""
    stated = flow.constant(use.step.inputs[1])
    if stated is not None and np.size(stated) == 1:
        return int(np.ravel(stated)[0])
    axis = attributes_of(use.step.node).get("axis", -1)
    return _at(declared_shape(use.step.outputs[0], flow) or (), axis) or _USUAL


def _depth(use: Use, flow: Dataflow) -> Sizes | None:
    return (
        Sizes([one_hot_depth(use, flow)], "classes of a one-hot coding") if use.position else None
    )


def _range(use: Use, flow: Dataflow) -> Sizes | None:
    """Finds a bound or the step of a range: of the declared length, or of sixteen."""
    start, limit, delta = (
        None if value is None else float(np.ravel(value)[0])
        for value in map(flow.constant, use.step.inputs)
    )
    declared = _at(declared_shape(use.step.outputs[0], flow) or (), 0)
    long, by = declared or _USUAL, delta or 1.0
    if declared is None and start is None and limit is not None and limit * by > 0:
        start = 0.0
    first = start if start is not None else 0.0 if limit is None else limit - long * by
    values = (first, first + long * by, by)
    return Sizes([values[use.position]], "a range", sure=declared is not None)


def _axes_of(use: Use, flow: Dataflow) -> Sizes | None:
    """Finds the axes that Squeeze, Unsqueeze or a reduction takes: those that give the declared
    shape, or the last ones that fit."""
    step, position = use
    data = _data(use, flow)
    if position != 1:
        return None
    count, declared = _count(step.inputs[1], flow), declared_shape(step.outputs[0], flow)
    rank = len(data) + count if step.op == "Unsqueeze" else len(data)
    fitting = [
        (declared == shape, axes)
        for axes in islice(combinations(reversed(range(rank)), count), _MOST_CHOICES)
        if (shape := _shape_with(use, data, axes)) is not None
    ]
    if not fitting:
        return None
    is_declared, axes = max(fitting, key=lambda each: each[0])
    return Sizes(sorted(axes), _DECLARED if is_declared else "the last axis", sure=True)


def _shape_with(use: Use, data: Dimensions, axes: Sequence[int]) -> Dimensions | None:
    """Returns the result's shape with these axes, None if the operator refuses them."""
    if use.step.op == "Unsqueeze":
        rest = iter(data)
        return tuple(1 if axis in axes else next(rest) for axis in range(len(data) + len(axes)))
    if use.step.op == "Squeeze":
        if any(data[axis] not in {1, None} for axis in axes):
            return None
    elif attributes_of(use.step.node).get("keepdims", 1):
        return tuple(1 if axis in axes else size for axis, size in enumerate(data))
    return tuple(size for axis, size in enumerate(data) if axis not in axes)


def _image_of_columns(use: Use, flow: Dataflow) -> Sizes | None:
    """Finds the image that Col2Im makes: the declared one, or one with equal sides."""
    step, position = use
    data, block = _data(use, flow), flow.constant(step.inputs[2])
    if position != 1 or block is None or len(data) != 3 or not data[2]:  # noqa: PLR2004
        return None
    count, attributes, columns = _count(step.inputs[1], flow), attributes_of(step.node), data[2]
    side = round(columns ** (1 / count))
    windows = [side] * count if side**count == columns else [columns, *[1] * (count - 1)]
    strides, dilations = (attributes.get(name, [1] * count) for name in ("strides", "dilations"))
    pads = attributes.get("pads", [0] * 2 * count)
    axes = zip(windows, strides, dilations, block, pads[:count], pads[count:], strict=True)
    guess = [
        (number - 1) * by + apart * (int(wide) - 1) + 1 - before - after
        for number, by, apart, wide, before, after in axes
    ]
    target = _target(use, flow, count + 2)[2:]
    return _declared_or_guess(target, guess, "equal sides")._replace(sure=True)


def _grid(use: Use, flow: Dataflow) -> Sizes | None:
    """Finds the image that AffineGrid makes places for: its batch is that of the matrices."""
    count, data = _count(use.step.inputs[1], flow), _data(use, flow)
    if use.position != 1 or not data:
        return None
    batch, *sides, _ = _target(use, flow, count)
    usual = [data[0], 1, *[_USUAL] * (count - 2)]
    return _declared_or_guess([batch, None, *sides], usual, "a small image")._replace(sure=True)


def _unpooled(use: Use, flow: Dataflow) -> Sizes | None:
    """Finds what MaxUnpool makes: the declared shape, or the least that its windows are in."""
    data, attributes = _data(use, flow), attributes_of(use.step.node)
    if use.position != 2 or None in data:  # noqa: PLR2004
        return None
    window, rank = attributes["kernel_shape"], len(data) - 2
    strides, pads = attributes.get("strides", [1] * rank), attributes.get("pads", [0] * 2 * rank)
    sides = [
        ((data[n + 2] or 1) - 1) * strides[n] + window[n] - pads[n] - pads[rank + n]
        for n in range(rank)
    ]
    target = _target(use, flow, len(data))
    return _declared_or_guess(target, [*data[:2], *sides], "its windows")._replace(sure=True)


def _cropped(use: Use, flow: Dataflow) -> Sizes | None:
    """Finds the extents that CenterCropPad cuts or pads to: what is declared, or none changes."""
    data = _data(use, flow)
    if use.position != 1 or not data:
        return None
    axes = _axes(use, flow, 2, _count(use.step.inputs[1], flow), len(data))
    target = _target(use, flow, len(data))
    return _declared_or_guess([target[n] for n in axes], [data[n] for n in axes], "as it was")


def _transformed(use: Use, flow: Dataflow) -> Sizes | None:
    """Finds the length or the axis of a DFT: those of the signal."""
    step, position = use
    given = flow.constant(step.inputs[2]) if len(step.inputs) > 2 and step.inputs[2] else None  # noqa: PLR2004
    axis = int(np.ravel(given)[0]) if given is not None else attributes_of(step.node).get("axis", 1)
    numbers = {1: _at(_data(use, flow), axis), 2: 1}
    return Sizes([numbers[position]], "the signal's") if position in numbers else None


def _frames(use: Use, flow: Dataflow) -> Sizes | None:
    """Finds the step or the length of the frames of an STFT: of its window, or of sixteen."""
    step, position = use
    if position not in {1, 3}:
        return None
    stated = flow.constant(step.inputs[3]) if position == 1 and len(step.inputs) > 3 else None  # noqa: PLR2004
    long = flow.dimension(step.inputs[2], 0) if any(step.inputs[2:3]) else None
    long = long or (_USUAL if stated is None else int(np.ravel(stated)[0]))
    return Sizes([long if position == 3 else max(1, long // 4)], "the frames of a signal")  # noqa: PLR2004


def _window(use: Use, flow: Dataflow) -> Sizes | None:
    return _declared_or_guess(_target(use, flow, 1), [_USUAL], "a short window")


def _always(numbers: dict[int, float], why: str) -> Callable[[Use, Dataflow], Sizes | None]:
    """Returns a rule of operands that have the same number in every model."""

    def sizes(use: Use, _: Dataflow) -> Sizes | None:
        number = numbers.get(use.position)
        return None if number is None else Sizes([number], why)

    return sizes


_SIZE_RULES: dict[str, Callable[[Use, Dataflow], Sizes | None]] = {
    **dict.fromkeys(("Reshape", "Expand", "ConstantOfShape"), _shape_of_result),
    "Tile": _repeats,
    **dict.fromkeys(("Resize", "Upsample"), _resize_operand),
    "Slice": _slice,
    "Pad": _pads,
    **dict.fromkeys(("Split", "SplitToSequence"), _parts),
    "TopK": _top,
    "OneHot": _depth,
    "Range": _range,
    **dict.fromkeys(("Squeeze", "Unsqueeze"), _axes_of),
    **{f"Reduce{kind}": _axes_of for kind in _REDUCTIONS},
    **dict.fromkeys(("HannWindow", "HammingWindow", "BlackmanWindow"), _window),
    "Col2Im": _image_of_columns,
    "AffineGrid": _grid,
    "MaxUnpool": _unpooled,
    "CenterCropPad": _cropped,
    "DFT": _transformed,
    "STFT": _frames,
    **dict.fromkeys(("CumSum", "CumProd"), _always({1: -1}, "the last axis")),
    **dict.fromkeys(("SequenceAt", "SequenceErase"), _always({1: 0}, "the first of a sequence")),
    "SequenceInsert": _always({2: 0}, "the first of a sequence"),
    "Loop": _always({0: 4}, "how often the model does something"),
    "NonMaxSuppression": _always({2: 100, 3: 0.45, 4: 0.25}, "what detectors are given"),
    "Trilu": _always({1: 0}, "the diagonal"),
}
