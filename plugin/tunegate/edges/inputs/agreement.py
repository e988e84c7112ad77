"""Values that two sides can both be given: their latencies are compared on the same ones."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import zip_longest

import msgspec
import numpy as np

from tunegate.artifacts.input_rules import (
    Columns,
    Constant,
    Draw,
    InputRule,
    Integers,
    OneOf,
)
from tunegate.edges.output.artifact_file import ArtifactTensor

_WIDE = 4
"""The bytes of an integer that holds any index."""


def agreed(
    base: Sequence[ArtifactTensor], head: Sequence[ArtifactTensor]
) -> tuple[tuple[ArtifactTensor, ...], tuple[ArtifactTensor, ...]]:
    """The inputs of both sides. Those that both have come first and in one order, with values that
    both take: so equal seeds give them equal arrays."""
    others = {tensor.name: tensor for tensor in head}
    shared = {
        tensor.name: _met(tensor, others[tensor.name])
        for tensor in base
        if tensor.name in others and _is_shared(tensor, others[tensor.name])
    }
    ours, theirs = (
        tuple(tensor for tensor in side if tensor.name not in shared) for side in (base, head)
    )
    pairs = shared.values()
    return (
        (*(pair[0] for pair in pairs), *ours),
        (*(pair[1] for pair in pairs), *theirs),
    )


def met(one: InputRule | None, other: InputRule | None) -> InputRule | None:
    """What both rules allow, or the second where there is nothing."""
    if one is None or other is None or one == other:
        return other
    values = _narrowed(one.values, other.values)
    return other if values is None else InputRule(values, other.why)


def is_alike(one: str, other: str) -> bool:
    """Whether one rule gives equal numbers in both types, by NumPy's names: in the same, in floats
    of 4 or 8 bytes, and in such integers."""
    types = np.dtype(one), np.dtype(other)
    are_wide = all(each.itemsize >= _WIDE for each in types)
    kinds = {each.kind for each in types}
    return one == other or (are_wide and kinds in ({"f"}, {"i"}))


def _is_shared(base: ArtifactTensor, head: ArtifactTensor) -> bool:
    return base.shape == head.shape and is_alike(base.dtype, head.dtype)


def _met(base: ArtifactTensor, head: ArtifactTensor) -> tuple[ArtifactTensor, ArtifactTensor]:
    """The rule of both, or each its own where they have nothing in common."""
    if base.rule is None or head.rule is None or base.rule.values == head.rule.values:
        return base, head
    values = _narrowed(base.rule.values, head.rule.values)
    if values is None:
        return base, head
    rule = InputRule(values, head.rule.why)
    return msgspec.structs.replace(base, rule=rule), msgspec.structs.replace(head, rule=rule)


def _narrowed(one: object, other: object) -> Draw | Columns | None:
    match one, other:
        case Integers(), Integers():
            low, high = max(one.low, other.low), min(one.high, other.high)
            return Integers(low, high) if low <= high else None
        case OneOf(), OneOf():
            shared = tuple(value for value in one.values if value in other.values)
            return OneOf(shared, other.words) if shared else None
        case (Constant(), Integers()) | (Integers(), Constant()):
            return _fixed(one, other)
        case Columns(), Columns() if one.axis == other.axis:
            return _columns(one, other)
        case _:
            return None


def _fixed(one: object, other: object) -> Constant | None:
    """The constant of one side, where the other takes it."""
    constant, rest = (one, other) if isinstance(one, Constant) else (other, one)
    if not (isinstance(constant, Constant) and isinstance(rest, Integers)):
        return None
    value = constant.value
    is_taken = isinstance(value, int) and rest.low <= value <= rest.high
    return constant if is_taken else None


def _columns(one: Columns, other: Columns) -> Columns | None:
    parts: list[Draw] = []
    for ours, theirs in zip_longest(one.parts, other.parts):
        narrowed = ours if ours == theirs else _narrowed(ours, theirs)
        if narrowed is None or isinstance(narrowed, Columns):
            return None
        parts.append(narrowed)
    return Columns(other.axis, tuple(parts))
