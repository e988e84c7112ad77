"""Facts about the values of an input, read from the graph."""

import math
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np

from tunegate.artifacts.inputs import Category
from tunegate.models.inputs.constants import attributes_of
from tunegate.models.inputs.dataflow import Dataflow
from tunegate.models.inputs.size_operands import one_hot_depth
from tunegate.models.inputs.trace import Meeting, Selected, is_cast_to_boolean, meetings_of
from tunegate.models.seeded_inputs import TensorLike

HIDES_NOTHING = "a mask that hides nothing"
"""The reason why a mask input is 1 everywhere."""
_LENGTH = "a length: the whole axis"


class Fact(NamedTuple):
    """Bounds of an input, or the values it may have. It `is_must` if the model rejects others, and
    `is_hint` if any other fact tells more. A fact holds for all columns unless it names some. It
    `is_rescaled` if the model multiplies or shifts the value first. It `is_usual` if the
    operator takes others, and gets none of them."""

    why: str
    low: float | None = None
    high: float | None = None
    values: tuple[Category, ...] = ()
    words: int = 1
    is_must: bool = False
    is_hint: bool = False
    columns: Selected | None = None
    is_rescaled: bool = False
    is_usual: bool = False

    @property
    def is_limit(self) -> bool:
        return self.is_usual or (self.is_must and (self.high is not None or bool(self.values)))


WHOLE_MASK = Fact(HIDES_NOTHING, values=(1,), is_usual=True)


# The categories in an encoder's attributes.

_MAX_CATEGORIES = 1000
_WORDS = 8
"""The number of known words in a text that the model splits."""


def encoder_keys(*names: str) -> Callable[[Meeting, Dataflow], Fact | None]:
    """Returns a rule that reads an encoder's categories from its attributes."""

    def fact_rule(meeting: Meeting, _: Dataflow) -> Fact | None:
        step, position = meeting.use
        attributes = attributes_of(step.node)
        keys: list[Any] = next((attributes[name] for name in names if attributes.get(name)), [])
        what = step.op.rpartition(".")[2]
        if position != 0 or not len(keys):
            return None
        words = _WORDS if meeting.trace.is_text else 1
        return categories(list(keys), f"categories of {what}", words)

    return fact_rule


def categories(elements: list[Any], why: str, words: int = 1) -> Fact | None:
    """Returns some of the categories, evenly spread if there are many."""
    every = [_text(value) if isinstance(value, bytes | str) else int(value) for value in elements]
    values = list(dict.fromkeys(value for value in every if value is not None))
    stride = max(1, math.ceil(len(values) / _MAX_CATEGORIES))
    if not values:
        return None
    return Fact(why, values=tuple(values[::stride]), words=words, is_must=True)


def _text(value: bytes | str) -> str | None:
    try:
        return value.decode() if isinstance(value, bytes) else value
    except UnicodeDecodeError:
        return None


# Facts about an input's values, from the steps that read it.

_MAX_NAME = 60


def facts_of(tensor: TensorLike, flow: Dataflow) -> Iterator[Fact]:
    """Yields the facts about an input of integers, booleans or texts."""
    for meeting in meetings_of(tensor, flow):
        step = meeting.use.step
        tell = _FACT_RULES.get(step.op)
        fact = tell(meeting, flow) if tell is not None else None
        if fact is not None:
            yield _translate(fact, meeting)


def index_facts_of(tensor: TensorLike, flow: Dataflow) -> Iterator[Fact]:
    """Yields the facts about a float input that the model casts to integers. Bounds of rescaled
    values are left out."""
    for meeting in meetings_of(tensor, flow):
        tell = _FACT_RULES.get(meeting.use.step.op) if meeting.trace.is_whole else None
        fact = tell(meeting, flow) if tell is not None else None
        if fact is not None and meeting.trace.scale == 1:
            yield _translate(fact, meeting)
        elif fact is not None:
            low, high = _bounds(fact, meeting)
            yield fact._replace(low=low, high=high, columns=None, is_rescaled=True)


def _bounds(fact: Fact, meeting: Meeting) -> tuple[float | None, float | None]:
    """Returns the bounds of the input at which the traced value has the fact's bounds."""
    trace = meeting.trace
    low, high = (
        None if bound is None else (bound - trace.offset) / trace.scale
        for bound in (fact.low, fact.high)
    )
    return low, high


def _translate(fact: Fact, meeting: Meeting) -> Fact:
    """Translates the fact about a traced value into one about its input."""
    trace, (low, high) = meeting.trace, _bounds(fact, meeting)
    is_number = all(isinstance(value, int) for value in fact.values)
    values = fact.values
    if is_number and (trace.offset or trace.scale != 1):
        values = tuple(
            round((value - trace.offset) / trace.scale)
            for value in fact.values
            if isinstance(value, int)
        )
    return fact._replace(
        low=None if low is None else math.ceil(low - 1e-9),
        high=None if high is None else math.floor(high + 1e-9),
        values=values,
        columns=trace.columns,
    )


def _indices(size: int | None, of: str) -> Fact | None:
    if size is None:
        return None
    return Fact(f"indices of {of}", low=0, high=max(size - 1, 0), is_must=True)


def _table_name(name: str, flow: Dataflow) -> str:
    """Returns a table's name for people: its own if it is a weight."""
    if flow.is_weight(name):
        return f"the table {name[:_MAX_NAME]}"
    return "what the model computes"


def _gather(meeting: Meeting, flow: Dataflow) -> Fact | None:
    """Finds indices into one axis of the first input."""
    step, position = meeting.use
    if position != 1:
        return None
    attributes = attributes_of(step.node)
    axis = attributes.get("axis", attributes.get("gather_axis", 0))
    return _indices(flow.dimension(step.inputs[0], axis), _table_name(step.inputs[0], flow))


def _gather_nd(meeting: Meeting, flow: Dataflow) -> Fact | None:
    """Finds indices into several axes at once, one per number of the last axis."""
    step, position = meeting.use
    shape = flow.shape(step.inputs[0])
    if position != 1 or shape is None:
        return None
    first = attributes_of(step.node).get("batch_dims", 0)
    count = flow.dimension(step.inputs[1], -1) or 1
    component = meeting.trace.component
    sizes = shape[first : first + count]
    if component is not None:
        sizes = sizes[component : component + 1]
    known_sizes = [size for size in sizes if size is not None]
    return _indices(min(known_sizes) if known_sizes else None, _table_name(step.inputs[0], flow))


def _one_hot(meeting: Meeting, flow: Dataflow) -> Fact | None:
    if meeting.use.position != 0:
        return None
    count = one_hot_depth(meeting.use, flow)
    return Fact(f"classes of a one-hot coding of {count}", low=0, high=max(count - 1, 0))


_MOST_RAISED = 3
_EXACT_BITS, _LAST = 53, 2**31 - 1
_DRAWN = 255
"""The largest integer that is drawn where nothing limits it."""


def _power(meeting: Meeting, flow: Dataflow) -> Fact | None:
    """Finds integers whose powers do not overflow: what is beyond differs between processors."""
    step, position = meeting.use
    bits = flow.bits(step.outputs[0])
    if not bits:
        return None
    other = flow.constant(step.inputs[1 - position])
    most = _MOST_RAISED if other is None or not np.size(other) else float(np.max(np.abs(other)))
    for high in range(_MOST_RAISED, 0, -1):
        base, exponent = (high, most) if position == 0 else (most, high)
        if exponent * math.log2(max(base, 1)) < bits:
            break
    return Fact("a power of integers", low=0, high=high)


def _reduced(meeting: Meeting, flow: Dataflow) -> Fact | None:
    """Finds integers whose sum or product has each digit: ONNX Runtime reduces in float64 and stops
    at the last number of the type, behind which a kernel goes on with the first."""
    (step, position), trace = meeting.use, meeting.trace
    bits = min(flow.bits(step.outputs[0]), _EXACT_BITS)
    read, made = flow.shape(trace.name), flow.shape(step.outputs[0])
    if position != 0 or not bits or read is None or made is None or None in (*read, *made):
        return None
    count = max(1, math.prod(n or 1 for n in read) // math.prod(n or 1 for n in made))
    most, why, low = 2**bits - 1, "integers whose sum or product the type holds", None
    if step.op != "ReduceProd":
        high = most // count if step.op != "ReduceSumSquare" else math.isqrt(most // count)
    elif trace.scale != 1:
        high = int(most ** (1 / count))
    elif (high := int(most ** (1 / count))) > 1:
        low = 1
    else:
        return Fact(why, values=(-1, 1))
    return Fact(why, low, high) if (high - trace.offset) / trace.scale < _DRAWN else None


def _shift(meeting: Meeting, flow: Dataflow) -> Fact | None:
    """Finds the bits to shift by: more than there are differ between processors."""
    bits = flow.bits(meeting.use.step.outputs[0])
    is_it = meeting.use.position == 1 and bits
    return Fact("the bits to shift by", low=0, high=bits - 1) if is_it else None


def _divisor(meeting: Meeting, flow: Dataflow) -> Fact | None:
    """Finds integers that the model divides by: ONNX Runtime refuses 0."""
    step, position = meeting.use
    if position != 1 or not flow.is_whole(step.outputs[0]):
        return None
    return Fact("a divisor of integers", low=1, is_must=True)


def _compared_value(meeting: Meeting, flow: Dataflow) -> Fact | None:
    step, position = meeting.use
    constant = flow.constant(step.inputs[1 - position])
    if constant is None or np.size(constant) == 0:
        return None
    values = np.unique(np.ravel(constant))
    if values.dtype.kind in "OSU":
        return categories(values.tolist(), "texts that the model compares with")
    if values.dtype.kind not in "iu":
        return None
    if np.size(constant) > 1:
        low, high = int(values.min()), int(values.max())
        return Fact("values that the model compares with", low=low, high=high, is_hint=True)
    shape = flow.shape(meeting.trace.name)
    if shape is None or None in shape or math.prod(each or 0 for each in shape) != 1:
        return None  # one of many values, as a padding token is: the others occur as well
    return Fact("the value that the model compares with", values=(int(values[0]),))


def _compare(meeting: Meeting, flow: Dataflow) -> Fact | None:
    """Finds a length: a value that is compared with the numbers of all positions."""
    step, position = meeting.use
    places = flow.constant(step.inputs[1 - position])
    if places is None or np.size(places) < 2 or np.asarray(places).dtype.kind not in "iu":  # noqa: PLR2004
        return None
    numbers = np.ravel(places)
    is_counted = np.array_equal(np.sort(numbers), np.arange(numbers.size) + numbers.min())
    if not is_counted:
        return None
    return Fact(_LENGTH, values=(int(numbers.max()) + 1,))


def _clip(meeting: Meeting, flow: Dataflow) -> Fact | None:
    step, position = meeting.use
    if position != 0:
        return None
    bounds = [flow.constant(name) if name else None for name in (*step.inputs[1:], "", "")[:2]]
    numbers = (None if bound is None else float(np.ravel(bound)[0]) for bound in bounds)
    # The last numbers of a type bound nothing.
    low, high = (None if each is None or abs(each) >= _LAST else each for each in numbers)
    return Fact("what the model clips to", low=low, high=high)


def _length_of_sequence(at: int, axis: int) -> Callable[[Meeting, Dataflow], Fact | None]:
    """Returns a rule for lengths, which become those of the whole axis, so that all work is
    done."""

    def fact_rule(meeting: Meeting, flow: Dataflow) -> Fact | None:
        step, position = meeting.use
        size = flow.dimension(step.inputs[0], axis) if position == at else None
        return None if size is None else Fact(_LENGTH, values=(size,), is_usual=True)

    return fact_rule


def _reverse(meeting: Meeting, flow: Dataflow) -> Fact | None:
    axis = attributes_of(meeting.use.step.node).get("time_axis", 0)
    return _length_of_sequence(1, axis)(meeting, flow)


def _mask(position: int) -> Callable[[Meeting, Dataflow], Fact | None]:
    def fact_rule(meeting: Meeting, _: Dataflow) -> Fact | None:
        is_it = meeting.use.position == position
        return WHOLE_MASK if is_it else None

    return fact_rule


def _inverted_mask(meeting: Meeting, flow: Dataflow) -> Fact | None:
    """Finds an inverted mask: subtracted from 1, and scaled to a large negative number."""
    step, position = meeting.use
    one = flow.constant(step.inputs[0])
    if position != 1 or one is None or not np.all(one == 1):
        return None
    return Fact(HIDES_NOTHING, values=(1,))


def _cast_to_boolean(meeting: Meeting, _: Dataflow) -> Fact | None:
    is_it = is_cast_to_boolean(meeting.use.step)
    return Fact(HIDES_NOTHING, values=(1,)) if is_it else None


def _embedding(tables: dict[int, int]) -> Callable[[Meeting, Dataflow], Fact | None]:
    """Returns a rule for tokens and segments, each with its table."""

    def fact_rule(meeting: Meeting, flow: Dataflow) -> Fact | None:
        step, position = meeting.use
        if position not in tables or tables[position] >= len(step.inputs):
            return None
        table = step.inputs[tables[position]]
        return _indices(flow.dimension(table, 0), _table_name(table, flow))

    return fact_rule


_ML = "ai.onnx.ml."
_MS = "com.microsoft."
_FACT_RULES: dict[str, Callable[[Meeting, Dataflow], Fact | None]] = {
    **dict.fromkeys(("Gather", "GatherElements", "ScatterElements", "Scatter"), _gather),
    f"{_ML}ArrayFeatureExtractor": lambda meeting, flow: (
        _indices(flow.dimension(meeting.use.step.inputs[0], -1), "features")
        if meeting.use.position == 1
        else None
    ),
    f"{_MS}GatherBlockQuantized": _gather,
    **dict.fromkeys(("GatherND", "ScatterND", f"{_MS}GatherND"), _gather_nd),
    "OneHot": _one_hot,
    "Pow": _power,
    **dict.fromkeys(("ReduceProd", "ReduceSum", "ReduceSumSquare", "ReduceL1"), _reduced),
    "BitShift": _shift,
    **dict.fromkeys(("Div", "Mod"), _divisor),
    "Equal": _compared_value,
    **dict.fromkeys(("Less", "LessOrEqual", "Greater", "GreaterOrEqual"), _compare),
    "Clip": _clip,
    **dict.fromkeys(("LSTM", "GRU", "RNN"), _length_of_sequence(4, 0)),
    "ReverseSequence": _reverse,
    "Sub": _inverted_mask,
    "Cast": _cast_to_boolean,
    f"{_MS}EmbedLayerNormalization": _embedding({0: 2, 1: 4}),
    f"{_MS}QEmbedLayerNormalization": _embedding({0: 2, 1: 4}),
    f"{_MS}Attention": _mask(3),
    f"{_MS}MultiHeadAttention": _mask(4),
    f"{_ML}LabelEncoder": encoder_keys("keys_strings", "keys_int64s", "classes_strings"),
    f"{_ML}OneHotEncoder": encoder_keys("cats_strings", "cats_int64s"),
    f"{_ML}CategoryMapper": encoder_keys("cats_strings", "cats_int64s"),
    f"{_ML}DictVectorizer": encoder_keys("string_vocabulary", "int64_vocabulary"),
    "TfIdfVectorizer": encoder_keys("pool_strings", "pool_int64s"),
}
