"""Values that both sides accept, so that their latencies are compared on the same inputs."""

import math
from collections.abc import Sequence
from itertools import zip_longest

import msgspec

from tunegate.artifacts import inputs
from tunegate.errors import MeasurementError
from tunegate.models.narrow_types import dtype_named, kind_of, limits_of
from tunegate.system.output.artifact_file import ArtifactTensor

_WIDE = 4
"""The width in bytes of an integer that holds any index."""
_NUMBERS = frozenset("fiub")
"""NumPy's kinds that share one draw: numbers are drawn in the widest type, and cast."""
_BITS = inputs.Integers(0, 1)
"""The default range of integers and booleans."""
_TEXT = inputs.OneOf(("a",))
_NOTHING_IN_COMMON = (
    "input {0}: base and head take no equal values, and on different ones they do different work. "
    "Give values for it under inputs"
)


def agree_on_inputs(
    base: Sequence[ArtifactTensor], head: Sequence[ArtifactTensor]
) -> tuple[tuple[ArtifactTensor, ...], tuple[ArtifactTensor, ...]]:
    """Returns the inputs of both sides. Shared inputs come first, in one order, with values that
    both accept, so that equal seeds give equal arrays. Raises MeasurementError if there are none:
    on other values a head may do less, and look faster for it."""
    others = {tensor.name: tensor for tensor in head}
    shared = {
        tensor.name: _share_rule(tensor, others[tensor.name])
        for tensor in base
        if tensor.name in others and _is_shared(tensor, others[tensor.name])
    }
    ours, theirs = (
        tuple(tensor for tensor in side if tensor.name not in shared) for side in (base, head)
    )
    pairs = shared.values()
    return (*(pair[0] for pair in pairs), *ours), (*(pair[1] for pair in pairs), *theirs)


def intersect_rules(
    first: inputs.InputRule | None, other: inputs.InputRule | None
) -> inputs.InputRule | None:
    """Returns the intersection of both rules, the second rule if it is empty."""
    if first is None or other is None or first == other:
        return other
    values = _intersection(first.values, other.values)
    return other if values is None else inputs.InputRule(values, other.why)


def is_alike(dtype: str, other: str) -> bool:
    """Returns whether one rule draws equal numbers in both types, given by NumPy's names: one type,
    or floats of 4 or 8 bytes, or integers of such widths."""
    types = dtype_named(dtype), dtype_named(other)
    are_wide = all(each.itemsize >= _WIDE for each in types)
    kinds = {kind_of(each) for each in types}
    return dtype == other or (are_wide and kinds in ({"f"}, {"i"}))


def _is_shared(base: ArtifactTensor, head: ArtifactTensor) -> bool:
    if (base.shape, base.form) != (head.shape, head.form):
        return False
    kinds = {kind_of(dtype_named(side.dtype)) for side in (base, head)}
    return base.dtype == head.dtype or kinds <= _NUMBERS


def _share_rule(
    base: ArtifactTensor, head: ArtifactTensor
) -> tuple[ArtifactTensor, ArtifactTensor]:
    """Returns both with the shared rule; each keeps values that a user gave."""
    are_alike = is_alike(base.dtype, head.dtype)
    ours, theirs = _values(base), _values(head)
    if ours == theirs and are_alike:
        return base, head
    if isinstance(ours, inputs.Files) or isinstance(theirs, inputs.Files):
        return base, head
    values = ours if ours == theirs or _are_floats(base, head) else _intersection(ours, theirs)
    if isinstance(values, inputs.Integers) and not are_alike:
        values = _representable(_representable(values, base.dtype), head.dtype)
    if values is None:
        raise MeasurementError(_NOTHING_IN_COMMON.format(base.name))
    rule = inputs.InputRule(values, head.rule.why if head.rule is not None else "")
    return msgspec.structs.replace(base, rule=rule), msgspec.structs.replace(head, rule=rule)


def _are_floats(base: ArtifactTensor, head: ArtifactTensor) -> bool:
    """Returns whether both rules draw floats that every model accepts."""
    drawn = (_values(base), _values(head))
    kinds = {kind_of(dtype_named(side.dtype)) for side in (base, head)}
    return kinds == {"f"} and all(
        isinstance(each, inputs.Normal | inputs.Uniform) for each in drawn
    )


def _values(tensor: ArtifactTensor) -> inputs.Drawn:
    if tensor.rule is not None:
        return tensor.rule.values
    kind = kind_of(dtype_named(tensor.dtype))
    if kind == "f":
        return inputs.Normal()
    return _TEXT if kind == "O" else _BITS


def _representable(values: inputs.Integers | None, dtype: str) -> inputs.Integers | None:
    """Returns the integers of the range that the type can hold."""
    kind = kind_of(dtype_named(dtype))
    if values is None or kind == "f":
        return values
    least, most = limits_of(dtype_named(dtype)) if kind in "iu" else (0, 1)
    low, high = max(values.low, least), min(values.high, most)
    return inputs.Integers(low, high) if low <= high else None


def _intersection(first: object, other: object) -> inputs.Draw | inputs.Columns | None:
    match first, other:
        case (inputs.Integers() as whole, rest) | (rest, inputs.Integers() as whole):
            return _integers_in(whole, rest)
        case inputs.OneOf(), inputs.OneOf():
            shared = tuple(value for value in first.values if value in other.values)
            return inputs.OneOf(shared, other.words) if shared else None
        case inputs.Columns(), inputs.Columns() if first.axis == other.axis:
            return _columns(first, other)
        case _:
            return None


def _integers_in(integers: inputs.Integers, other_rule: object) -> inputs.Draw | None:
    """Returns the integers that the other rule allows, too."""
    low, high = integers.low, integers.high
    match other_rule:
        case inputs.Normal():
            return integers
        case inputs.Constant(value=value):
            return other_rule if isinstance(value, int) and low <= value <= high else None
        case inputs.Integers() | inputs.Uniform():
            low, high = max(low, math.ceil(other_rule.low)), min(high, math.floor(other_rule.high))
            return inputs.Integers(low, high) if low <= high else None
        case _:
            return None


def _columns(first: inputs.Columns, other: inputs.Columns) -> inputs.Columns | None:
    parts: list[inputs.Draw] = []
    for ours, theirs in zip_longest(first.parts, other.parts):
        narrowed = ours if ours == theirs else _intersection(ours, theirs)
        if narrowed is None or isinstance(narrowed, inputs.Columns):
            return None
        parts.append(narrowed)
    return inputs.Columns(other.axis, tuple(parts))
