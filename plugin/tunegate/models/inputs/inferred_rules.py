"""Infers what to draw for a model's inputs from its graph and their names, without running it."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence

import msgspec
import onnx

from tunegate.artifacts.inputs import (
    STANDARD,
    UNLIMITED,
    Columns,
    Constant,
    Draw,
    Files,
    InputRule,
    Integers,
    OneOf,
    Uniform,
)
from tunegate.models.inputs.dataflow import Dataflow
from tunegate.models.inputs.facts import HIDES_NOTHING, WHOLE_MASK, Fact, facts_of, index_facts_of
from tunegate.models.inputs.float_rules import float_rule
from tunegate.models.inputs.named_values import OpenAxes, named_rule, words_of
from tunegate.models.inputs.size_operands import size_rule
from tunegate.models.model_inputs import graph_inputs
from tunegate.models.narrow_types import dtype_named, kind_of, limits_of
from tunegate.models.seeded_inputs import TensorLike
from tunegate.system.onnx_scan import nodes_of

_WORDS = ("alpha", "beta", "gamma", "delta", "epsilon", "zeta", "eta", "theta")
_IMAGE_RANK = 4
_SCALED = InputRule(Uniform(0.0, 1.0), "pixels that were scaled, as Ultralytics does before")
_BYTES = Integers(0, 255)
_WHYS = 3
_MAX_COLUMNS = 256
_LONG = 2**63 - 1
_LIMITED = re.compile(
    r".*mask.*|(.*_)?(position|token_type|segment|cache_position)(_?ids?)?|(.*_)?(labels|durations?)"
    r"|(.*_)?seqlens?(_k)?|(.*_)?grid_thw"
)
"""Names of integers that are small wherever they come from."""
_BY_NAME = "integers that are small by their name"


def inferred_rules(
    model: onnx.ModelProto, tensors: Iterable[TensorLike]
) -> dict[str, InputRule | None]:
    """Returns the rule of each input by name; None for fair booleans."""
    every = tuple(tensors)
    flow = Dataflow(model, every)
    rules_by_name = {} if _is_tabular(model) else _name_rules(model, every)
    rules = {tensor.name: _rule(tensor, flow, rules_by_name.get(tensor.name)) for tensor in every}
    if _is_of_ultralytics(model):
        rules |= {t.name: _SCALED for t in every if _is_image(t) and rules[t.name] == STANDARD}
    return {tensor.name: _fitting(rules[tensor.name], tensor.dtype) for tensor in every}


def _fitting(rule: InputRule | None, dtype: str) -> InputRule | None:
    """Returns the rule with integers that the type has: a model may compare bytes with 300."""
    numpy_dtype = dtype_named(dtype)
    if rule is None or kind_of(numpy_dtype) not in "iu":
        return rule
    least, most = limits_of(numpy_dtype)
    values, most = rule.values, min(most, _LONG)
    if isinstance(values, Files):
        return rule
    if isinstance(values, Columns):
        fitting = tuple(_within(part, least, most) for part in values.parts)
        return msgspec.structs.replace(rule, values=Columns(values.axis, fitting))
    return msgspec.structs.replace(rule, values=_within(values, least, most))


def _within(values: Draw, least: int, most: int) -> Draw:
    match values:
        case Integers(low=low, high=high):
            return Integers(*(min(max(each, least), most) for each in (low, high)))
        case Constant(value=int() as value):
            return Constant(min(max(value, least), most))
        case OneOf(values=every):
            inside = tuple(v for v in every if isinstance(v, int) and least <= v <= most)
            return OneOf(inside) if inside else Integers(0, 1)
        case _:
            return values


def _is_of_ultralytics(model: onnx.ModelProto) -> bool:
    """Returns whether the metadata is what Ultralytics writes."""
    return {"imgsz", "stride", "task"} <= {entry.key for entry in model.metadata_props}


def _is_image(tensor: TensorLike) -> bool:
    return len(tensor.shape) == _IMAGE_RANK and kind_of(dtype_named(tensor.dtype)) == "f"


def _is_tabular(model: onnx.ModelProto) -> bool:
    """Returns whether the inputs are columns of a table, named after what was observed."""
    return any(node.domain == "ai.onnx.ml" for node in nodes_of(model))


def _name_rules(model: onnx.ModelProto, every: Sequence[TensorLike]) -> dict[str, InputRule | None]:
    axes: OpenAxes = {
        value.name: [axis for axis, size in enumerate(value.dimensions) if size is None]
        for value in graph_inputs(model.graph)
    }
    return {tensor.name: named_rule(tensor, every, axes) for tensor in every}


def _rule(tensor: TensorLike, flow: Dataflow, named_rule: InputRule | None) -> InputRule | None:
    dtype = dtype_named(tensor.dtype)
    kind = kind_of(dtype)
    if kind == "O":
        return _discrete(tensor, list(facts_of(tensor, flow)), OneOf(_WORDS), "any words")
    if kind == "b":
        is_mask = "mask" in tensor.name.lower()
        return named_rule or (InputRule(Constant(1), HIDES_NOTHING) if is_mask else None)
    sized = size_rule(tensor, flow)
    if sized is not None and (sized.sure or named_rule is None):
        return sized.rule
    if kind not in "iu":
        return named_rule or _index_rule(tensor, flow) or float_rule(tensor, flow) or STANDARD
    facts = list(facts_of(tensor, flow))
    return _integer_rule(tensor, facts, named_rule) if facts or named_rule is None else named_rule


def _integer_rule(tensor: TensorLike, facts: list[Fact], named_rule: InputRule | None) -> InputRule:
    dtype = dtype_named(tensor.dtype)
    if named_rule is not None and isinstance(named_rule.values, Constant):
        facts.append(Fact(named_rule.why, values=(named_rule.values.value,)))
    if "mask" in tensor.name.lower() and not any(fact.is_must for fact in facts):
        facts.append(WHOLE_MASK)
    if dtype.itemsize == 1:
        usual, why = Integers(*limits_of(dtype)), f"all values of {dtype}"
    else:
        usual, why = _BYTES, UNLIMITED
    rule = _discrete(tensor, facts, usual, why)
    has_name = named_rule is not None or _LIMITED.fullmatch(words_of(tensor.name)) is not None
    if has_name or dtype.itemsize == 1 or _is_limited(tensor, facts):
        return msgspec.structs.replace(rule, why=_without_limit(rule.why) or _BY_NAME)
    if not rule.why.endswith(UNLIMITED):
        return msgspec.structs.replace(rule, why=f"{rule.why}, {UNLIMITED}")
    return rule


def with_own_limit(rule: InputRule | None, own: InputRule | None) -> InputRule | None:
    """Returns a rule of the base's model with what the head's own graph says of limits."""
    if rule is None or own is None:
        return rule
    is_any = own.why.endswith(UNLIMITED)
    if rule.why.endswith(UNLIMITED) == is_any:
        return rule
    why = f"{rule.why}, {UNLIMITED}" if is_any else _without_limit(rule.why) or own.why
    return msgspec.structs.replace(rule, why=why)


def _without_limit(why: str) -> str:
    return why.removesuffix(UNLIMITED).removesuffix(", ")


def _is_limited(tensor: TensorLike, facts: Iterable[Fact]) -> bool:
    """Returns whether the model gets no large numbers, be it in each column by itself."""
    limits = [fact for fact in facts if fact.is_limit]
    columns = {
        (s.axis, index) for s in (fact.columns for fact in limits) if s for index in s.indices
    }
    sizes = Counter(axis for axis, _ in columns)
    return any(fact.columns is None for fact in limits) or any(
        size == tensor.shape[axis] for axis, size in sizes.items()
    )


def _index_rule(tensor: TensorLike, flow: Dataflow) -> InputRule | None:
    """Returns the rule of floats that the model uses as indices, such as characters in a float
    input."""
    facts = list(index_facts_of(tensor, flow))
    must = [fact for fact in facts if fact.is_must]
    if not must:
        return None
    if any(fact.is_rescaled for fact in must):
        low = max((fact.low for fact in must if fact.low is not None), default=0.0)
        high = min((fact.high for fact in must if fact.high is not None), default=low)
        return InputRule(Uniform(low, high), _why(must, UNLIMITED)) if low < high else None
    return _discrete(tensor, facts, _BYTES, UNLIMITED)


def _discrete(tensor: TensorLike, facts: Sequence[Fact], usual: Draw, why: str) -> InputRule:
    """Returns one part for the whole input, or one per column if facts concern single columns."""
    axes = {fact.columns.axis for fact in facts if fact.columns is not None}
    axis = min(axes, default=0)
    if len(axes) == 1 and 0 < tensor.shape[axis] <= _MAX_COLUMNS:
        each = [
            _part([f for f in facts if _is_of(f, column)], usual)
            for column in range(tensor.shape[axis])
        ]
        if any(part != each[0] for part in each):
            return InputRule(Columns(axis, tuple(each)), _why(facts, why))
        return InputRule(each[0], _why(facts, why))
    return InputRule(_part(facts, usual), _why(facts, why))


def _is_of(fact: Fact, column: int) -> bool:
    return fact.columns is None or column in fact.columns.indices


def _why(facts: Sequence[Fact], otherwise: str) -> str:
    """Returns the reasons for a rule, the strictest first."""
    ordered = sorted(facts, key=lambda fact: not fact.is_must)
    whys = list(dict.fromkeys(fact.why for fact in ordered)) or [otherwise]
    more = f" and {len(whys) - _WHYS} more" if len(whys) > _WHYS else ""
    return ", ".join(whys[:_WHYS]) + more


def _part(facts: Sequence[Fact], usual: Draw) -> Draw:
    """Returns the values that all facts allow; a hint that contradicts the others is left out."""
    if isinstance(usual, OneOf):
        return _text_rule(facts) or usual
    must = [fact for fact in facts if fact.is_must]
    wishes = [fact for fact in facts if not (fact.is_must or (must and fact.is_hint))]
    range_so_far = _Allowed()
    for fact in (*must, *wishes):
        range_so_far = range_so_far.narrow(fact)
    return range_so_far.part(usual)


def _text_rule(facts: Sequence[Fact]) -> OneOf | None:
    with_texts = [fact for fact in facts if any(isinstance(value, str) for value in fact.values)]
    if not with_texts:
        return None
    shared = [v for v in with_texts[0].values if all(v in fact.values for fact in with_texts)]
    return OneOf(tuple(shared or with_texts[0].values), words=with_texts[0].words)


class _Allowed:
    """The allowed integers: between two bounds, or some of these values."""

    def __init__(
        self, low: int | None = None, high: int | None = None, values: tuple[int, ...] = ()
    ) -> None:
        self._low, self._high, self._values = low, high, values

    def narrow(self, fact: Fact) -> _Allowed:
        """Returns what the fact leaves, or itself if that would be nothing."""
        low, high = _higher(self._low, fact.low), _lower(self._high, fact.high)
        integers = tuple(value for value in fact.values if isinstance(value, int))
        values = _common_values(self._values, integers)
        high_enough = [value for value in values if low is None or value >= low]
        inside = tuple(value for value in high_enough if high is None or value <= high)
        is_empty = low is not None and high is not None and low > high
        return self if is_empty or (values and not inside) else _Allowed(low, high, inside)

    def part(self, usual: Draw) -> Draw:
        if len(self._values) == 1:
            return Constant(self._values[0])
        if self._values:
            return OneOf(self._values)
        if self._low is None and self._high is None:
            return usual
        if not isinstance(usual, Integers):
            return usual
        low, high = self._low, self._high
        if low is None:
            low = min(usual.low, high) if high is not None else usual.low
        if high is None:
            high = max(usual.high, low)
        return Integers(low, high) if low < high else Constant(low)


def _higher(first: int | None, other: float | None) -> int | None:
    return max((int(bound) for bound in (first, other) if bound is not None), default=None)


def _lower(first: int | None, other: float | None) -> int | None:
    return min((int(bound) for bound in (first, other) if bound is not None), default=None)


def _common_values(first: tuple[int, ...], other: tuple[int, ...]) -> tuple[int, ...]:
    """Returns the common values, the first's if there are none."""
    return tuple(value for value in first if value in other) or first or other
