"""Follows an input's values through a graph as long as they are only moved or rescaled."""

from collections import deque
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
import onnx

from tunegate.models.inputs.constants import attributes_of
from tunegate.models.inputs.dataflow import INTEGER_TYPES, Dataflow, Operation, Use
from tunegate.models.seeded_inputs import TensorLike

_MAX_FOLLOWED = 20_000
"""The most values to follow for one input."""
_MAX_FOLLOWED_OF_ALL = 200_000
"""The most for all inputs of a model; thousands of inputs may all lead to the same values."""
_ONNX_MOVES = (
    "Identity Cast Reshape Flatten Squeeze Unsqueeze Transpose Expand Tile Slice Concat Dropout "
    "Gather GatherElements GatherND Split Pad Abs Floor Ceil Round Relu Where Compress StringSplit"
)
_ML_MOVES = "StringNormalizer Imputer ArrayFeatureExtractor FeatureVectorizer"
_MOVES = {
    *_ONNX_MOVES.split(),
    *(f"ai.onnx.ml.{op}" for op in _ML_MOVES.split()),
    "StringNormalizer",
    "com.microsoft.Tokenizer",
}
_TOKENIZERS = {"com.microsoft.Tokenizer", "StringSplit"}
_ALL_INPUTS = {"Concat", "ai.onnx.ml.FeatureVectorizer"}
_KEEPS_PLACES = {"Identity", "Cast", "Dropout", "Abs", "Floor", "Ceil", "Round", "Relu"} | {
    "StringNormalizer",
    "ai.onnx.ml.Imputer",
}


class Selected(NamedTuple):
    """Some indices of an axis of the input."""

    axis: int
    indices: tuple[int, ...]


class Trace(NamedTuple):
    """A value of the graph equal to `scale * input + offset`, for some or all columns of the input.
    It `is_aligned` while its axes are the input's. As a part of a concatenation it begins at
    `component`. It `is_text` if the model splits texts, and `is_whole` if it casts floats to
    integers."""

    name: str
    scale: float = 1.0
    offset: float = 0.0
    columns: Selected | None = None
    is_aligned: bool = True
    component: int | None = None
    is_text: bool = False
    is_whole: bool = False


class Meeting(NamedTuple):
    """A step that reads a traced value."""

    trace: Trace
    use: Use


def meetings_of(tensor: TensorLike, flow: Dataflow) -> Iterator[Meeting]:
    """Yields every step that reads the input or a value only moved or rescaled from it, nearest
    first."""
    waiting = deque([Trace(tensor.name)])
    traces: set[Trace] = set()
    while waiting and len(traces) < _MAX_FOLLOWED and flow.followed < _MAX_FOLLOWED_OF_ALL:
        trace = waiting.popleft()
        if trace in traces:
            continue
        traces.add(trace)
        flow.followed += 1
        for use in flow.uses(trace.name):
            meeting = Meeting(trace, use)
            yield meeting
            waiting += _follow(meeting, tensor, flow)


def is_cast_to_boolean(step: Operation) -> bool:
    return step.op == "Cast" and attributes_of(step.node).get("to") == onnx.TensorProto.BOOL


def _is_cast_to_integers(step: Operation) -> bool:
    return step.op == "Cast" and attributes_of(step.node).get("to") in INTEGER_TYPES


def _follow(meeting: Meeting, tensor: TensorLike, flow: Dataflow) -> list[Trace]:
    op = meeting.use.step.op
    if op in _MOVES:
        return list(_move(meeting, tensor, flow))
    rescale = _RESCALED.get(op)
    rescaled = rescale(meeting, flow) if rescale is not None else None
    return [] if rescaled is None else [rescaled]


def _move(meeting: Meeting, tensor: TensorLike, flow: Dataflow) -> Iterator[Trace]:
    trace, (step, position) = meeting
    is_data = position == 0 or step.op in _ALL_INPUTS or (step.op == "Where" and position > 0)
    if not is_data or is_cast_to_boolean(step):
        return
    if step.op == "Where" and trace.offset:
        return  # negative indices corrected: the others pass unchanged
    keeps = step.op in _KEEPS_PLACES
    moved = trace._replace(is_aligned=trace.is_aligned and keeps)
    if not keeps:
        moved = moved._replace(component=_component(meeting, flow))
    if step.op == "Split":
        yield from _split_trace(meeting, tensor, flow)
        return
    columns = _select(meeting, tensor, flow)
    if columns is not None:
        is_flat = step.op == "Gather" and np.ndim(flow.constant(step.inputs[1])) == 0
        moved = moved._replace(columns=columns, is_aligned=not is_flat)
    is_text = trace.is_text or step.op in _TOKENIZERS
    is_whole = trace.is_whole or _is_cast_to_integers(step)
    yield moved._replace(name=step.outputs[0], is_text=is_text, is_whole=is_whole)


def _component(meeting: Meeting, flow: Dataflow) -> int | None:
    """Returns the offset of a part in the last axis of a concatenation."""
    step, position = meeting.use
    if step.op not in _ALL_INPUTS:
        return None
    rank = len(flow.shape(meeting.trace.name) or ())
    if attributes_of(step.node).get("axis", -1) not in {-1, rank - 1}:
        return None
    return flow.offsets(step)[position]


def _select(meeting: Meeting, tensor: TensorLike, flow: Dataflow) -> Selected | None:
    """Returns the input's columns that a step with constant indices selects."""
    trace, (step, _) = meeting
    if not trace.is_aligned:
        return None
    rank, attributes = len(tensor.shape), attributes_of(step.node)
    if step.op == "Gather":
        axis, columns = attributes.get("axis", 0) % max(rank, 1), flow.constant(step.inputs[1])
    elif step.op == "ai.onnx.ml.ArrayFeatureExtractor":
        axis, columns = rank - 1, flow.constant(step.inputs[1])
    elif step.op == "Slice":
        axis, columns = _slice(meeting, tensor, flow)
    else:
        return None
    return None if columns is None else _select_columns(trace, tensor, axis, np.ravel(columns))


def _select_columns(trace: Trace, tensor: TensorLike, axis: int, indexes: Any) -> Selected | None:
    """Returns the columns among the traced ones; a different axis is not followed."""
    if trace.columns is not None and trace.columns.axis != axis:
        return None
    if not 0 <= axis < len(tensor.shape):
        return None
    every = range(tensor.shape[axis])
    had: Sequence[int] = trace.columns.indices if trace.columns else every
    inside = [int(index) for index in indexes if -len(had) <= index < len(had)]
    return Selected(axis, tuple(had[index] for index in inside)) if inside else None


def _slice(meeting: Meeting, tensor: TensorLike, flow: Dataflow) -> tuple[int, Any]:
    """Returns the axis and the indices of a slice of one axis."""
    step = meeting.use.step
    attributes = attributes_of(step.node)
    operands = [flow.constant(name) if name else None for name in step.inputs[1:]]
    starts, ends, axes, steps = (*operands, None, None, None, None)[:4]
    if len(step.inputs) == 1:
        starts, ends, axes = (attributes.get(key) for key in ("starts", "ends", "axes"))
    if starts is None or ends is None or len(starts) != 1:
        return -1, None
    axis = int(axes[0]) % max(len(tensor.shape), 1) if axes is not None else 0
    had = meeting.trace.columns
    size = len(had.indices) if had and had.axis == axis else tensor.shape[axis]
    stride = int(steps[0]) if steps is not None else 1
    return axis, range(size)[int(starts[0]) : int(ends[0]) : stride]


def _split_trace(meeting: Meeting, tensor: TensorLike, flow: Dataflow) -> Iterator[Trace]:
    trace, (step, _) = meeting
    axis = attributes_of(step.node).get("axis", 0) % max(len(tensor.shape), 1)
    begin = 0
    for output in step.outputs:
        size = flow.dimension(output, axis)
        columns = None
        if trace.is_aligned and size is not None:
            columns = _select_columns(trace, tensor, axis, np.arange(begin, begin + size))
            begin += size
        is_known = columns is not None
        yield trace._replace(
            name=output, columns=columns or trace.columns, is_aligned=is_known, component=None
        )


def _scalar(flow: Dataflow, name: str) -> float | None:
    """Returns the number that fills a constant."""
    array = flow.constant(name)
    if array is None or np.size(array) == 0 or np.asarray(array).dtype.kind not in "iuf":
        return None
    first = float(np.ravel(array)[0])
    return first if np.all(array == first) and np.isfinite(first) else None


def _other_operand(meeting: Meeting, flow: Dataflow) -> float | None:
    step, position = meeting.use
    return _scalar(flow, step.inputs[1 - position]) if len(step.inputs) == 2 else None  # noqa: PLR2004


def _result(trace: Trace, meeting: Meeting) -> Trace:
    return trace._replace(name=meeting.use.step.outputs[0])


def _add(meeting: Meeting, flow: Dataflow) -> Trace | None:
    trace, other = meeting.trace, _other_operand(meeting, flow)
    if other is None:
        return None
    return _result(trace._replace(offset=trace.offset + other), meeting)


def _subtract(meeting: Meeting, flow: Dataflow) -> Trace | None:
    trace, other = meeting.trace, _other_operand(meeting, flow)
    if other is None or meeting.use.position == 1:
        return None
    return _result(trace._replace(offset=trace.offset - other), meeting)


def _multiply(meeting: Meeting, flow: Dataflow) -> Trace | None:
    factor = _other_operand(meeting, flow)
    return _scale(meeting, factor)


def _divide(meeting: Meeting, flow: Dataflow) -> Trace | None:
    divisor = _other_operand(meeting, flow)
    return _scale(meeting, 1 / divisor) if divisor and meeting.use.position == 0 else None


def _scale(meeting: Meeting, factor: float | None) -> Trace | None:
    if factor is None or factor <= 0:
        return None
    trace = meeting.trace
    rescaled = trace._replace(scale=trace.scale * factor, offset=trace.offset * factor)
    return _result(rescaled, meeting)


_RESCALED: dict[str, Callable[[Meeting, Dataflow], Trace | None]] = {
    "Add": _add,
    "Sub": _subtract,
    "Mul": _multiply,
    "Div": _divide,
}
