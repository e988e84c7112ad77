"""The inputs of a prepared model with the values that they get: given by the user, those of the
base, or inferred; and tried, where the model may refuse them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path

import numpy as np
import onnx

from tunegate.artifacts.inputs import (
    STANDARD,
    Columns,
    Constant,
    Draw,
    Files,
    InputRule,
    Integers,
    KnownInputs,
    Normal,
    OneOf,
    Uniform,
)
from tunegate.errors import ModelError
from tunegate.models.inputs.agreement import is_alike, met
from tunegate.models.inputs.dataflow import Dataflow
from tunegate.models.inputs.facts import HIDES_NOTHING, Fact, facts_of
from tunegate.models.inputs.float_rules import float_rule
from tunegate.models.model_inputs import made_of, stated_size
from tunegate.models.prepared import PreparedModel, Tensor
from tunegate.models.reference.session import ReferenceSession, said
from tunegate.models.seeded_inputs import TensorLike, checked_feeds
from tunegate.system.output.artifact_file import ArtifactTensor

_Rules = Mapping[str, InputRule | None]
_TRIED_SEEDS = (0, 1)
_REFUSED = "ONNX Runtime refuses others"


def drawn_inputs(
    prepared: PreparedModel, known: KnownInputs, path: str
) -> tuple[ArtifactTensor, ...]:
    """Returns the inputs with their rules. Raises ModelError, with the reason of ONNX Runtime,
    where it runs on nothing that was invented, or not on what was given."""
    _require_values(prepared.inputs, known.given, path)
    own = _inferred(_parsed(prepared.original), prepared.inputs)
    first, *others = _candidates(own, _of_base(known.base, prepared.inputs), known.given)
    tensors = _with_rules(prepared.inputs, first)
    _require_shapes(tensors, path)
    if all(_is_taken_by_all(tensor) for tensor in tensors):
        return tensors
    session = _session(prepared.original)
    if session is None:
        return tensors
    problem = _problem(session, tensors)
    if problem is None:
        return tensors
    for rules in others:
        careful = _with_rules(prepared.inputs, rules)
        if _problem(session, careful) is None:
            return careful
    raise ModelError(_refused(path, tensors, known.given, problem))


def _parsed(file: Path) -> onnx.ModelProto:
    return onnx.load(file, load_external_data=False)


def _inferred(model: onnx.ModelProto, tensors: Sequence[Tensor]) -> _Rules:
    """Returns the inferred rules; an odd graph gets none instead of an exception."""
    try:
        return inferred_rules(model, tensors)
    except Exception:  # noqa: BLE001 -- graphs are others' work, and ONNX Runtime judges them
        return dict.fromkeys(tensor.name for tensor in tensors)


def _of_base(file: str, tensors: tuple[Tensor, ...]) -> _Rules:
    """Returns the base's rules for inputs of the same name and shape, in types that one rule gives
    equal numbers in."""
    if not file:
        return {}
    try:
        model = _parsed(Path(file))
    except Exception:  # noqa: BLE001 -- a base that cannot be read is told of where it is built
        return {}
    shared = [tensor for tensor in tensors if _has(model, tensor)]
    return _inferred(model, shared)


def _has(model: onnx.ModelProto, tensor: Tensor) -> bool:
    for value in model.graph.input:
        if value.name == tensor.name:
            form, kind, _ = made_of(value)
            if form != tensor.form:
                return False
            dims = [*map(stated_size, kind.shape.dim)]
            dtype = str(onnx.helper.tensor_dtype_to_np_dtype(kind.elem_type))
            is_same = is_alike(dtype, tensor.dtype) and len(dims) == len(tensor.shape)
            return is_same and all(
                dim in {size, None} for dim, size in zip(dims, tensor.shape, strict=True)
            )
    return False


def _candidates(own: _Rules, base: _Rules, given: _Rules) -> Iterator[dict[str, InputRule | None]]:
    """Yields rules to try: the base's first, then what both allow, then the model's own, and at
    last less and less."""
    shared = {name: met(rule, own[name]) for name, rule in base.items()}
    yield {**own, **base, **given}
    if base:
        yield {**own, **shared, **given}
        yield {**own, **given}
    for high in (1, 0):
        yield {**{name: _careful(rule, 0, high) for name, rule in own.items()}, **given}
    yield {**{name: _careful(rule, 1, 1) for name, rule in own.items()}, **given}


def _careful(rule: InputRule | None, low: int, high: int) -> InputRule | None:
    """Integers that fit nearly everywhere, instead of many."""
    if rule is None or not isinstance(rule.values, Integers | Columns):
        return rule
    if isinstance(rule.values, Columns) and not all(
        isinstance(part, Integers) for part in rule.values.parts
    ):
        return rule
    values = Constant(low) if low == high else Integers(low, high)
    return InputRule(values, _REFUSED)


def _with_rules(tensors: tuple[Tensor, ...], rules: _Rules) -> tuple[ArtifactTensor, ...]:
    return tuple(
        ArtifactTensor(t.name, () if t.is_open else t.shape, t.dtype, rules[t.name], t.form)
        for t in tensors
    )


def _is_taken_by_all(tensor: ArtifactTensor) -> bool:
    """Returns whether every model takes such values: floats and booleans."""
    values = tensor.rule.values if tensor.rule is not None else None
    parts = values.parts if isinstance(values, Columns) else (values,)
    is_float = np.dtype(tensor.dtype).kind not in "iuO" and not tensor.form
    return is_float and all(
        part is None or isinstance(part, Normal | Uniform | Constant) for part in parts
    )


def _require_values(tensors: tuple[Tensor, ...], given: _Rules, path: str) -> None:
    """A model need not say how large the tensors in a sequence are: nothing is drawn then."""
    named = [each.name for each in tensors if each.is_open and not _is_in_files(given, each)]
    if named:
        raise ModelError(
            f"{path}: nothing says how large the tensors in {', '.join(named)} are. "
            f"Give values for {', '.join(named)} under inputs: in tunegate.yaml."
        )


def _is_in_files(given: _Rules, tensor: Tensor) -> bool:
    rule = given.get(tensor.name)
    return rule is not None and isinstance(rule.values, Files)


def _require_shapes(tensors: tuple[ArtifactTensor, ...], path: str) -> None:
    for tensor in tensors:
        given = tensor.rule.values if tensor.rule is not None else None
        is_checked = isinstance(given, Files) and not tensor.form
        for file in given.files if is_checked and isinstance(given, Files) else ():
            shape = np.load(file, mmap_mode="r", allow_pickle=False).shape
            if shape != tensor.shape:
                raise ModelError(
                    f"{path}: inputs.{tensor.name}.values has shape {list(shape)} "
                    f"instead of {list(tensor.shape)}."
                )


def _session(model: Path) -> ReferenceSession | None:
    """Returns a session, or None where ONNX Runtime does not load the model: the build reports
    that."""
    try:
        return ReferenceSession(model)
    except Exception:  # noqa: BLE001 -- its errors have no common base class
        return None


def _problem(session: ReferenceSession, tensors: tuple[ArtifactTensor, ...]) -> str | None:
    """Returns why ONNX Runtime does not run on these values, or None."""
    try:
        for feed in checked_feeds(tensors, _TRIED_SEEDS):
            session.run(feed)
    except Exception as error:  # noqa: BLE001 -- its errors have no common base class
        return said(error)
    return None


def _refused(path: str, tensors: tuple[ArtifactTensor, ...], given: _Rules, problem: str) -> str:
    invented = [
        tensor.name
        for tensor in tensors
        if tensor.name not in given and not _is_taken_by_all(tensor)
    ]
    names = ", ".join(invented)
    if not given:
        return (
            f"{path}: ONNX Runtime does not run on values that were invented ({problem}). "
            f"Give values for {names} under inputs: in tunegate.yaml."
        )
    others = f" Or give values for {names} too, which were invented." if invented else ""
    return (
        f"{path}: ONNX Runtime does not run on the values that are given for "
        f"{', '.join(given)} ({problem}). Change them under inputs: in tunegate.yaml.{others}"
    )


# The values to draw for the inputs of a model, inferred from its graph without running it.

_WORDS = ("alpha", "beta", "gamma", "delta", "epsilon", "zeta", "eta", "theta")
_BYTES = Integers(0, 255)
_WHYS = 3
_MAX_COLUMNS = 256
_OPEN = "integers that the graph does not limit"


def inferred_rules(
    model: onnx.ModelProto, tensors: Iterable[TensorLike]
) -> dict[str, InputRule | None]:
    """The rule of each input, by name; None for fair booleans."""
    every = tuple(tensors)
    flow = Dataflow(model, every)
    return {tensor.name: _rule(tensor, flow) for tensor in every}


def _rule(tensor: TensorLike, flow: Dataflow) -> InputRule | None:
    dtype = np.dtype(tensor.dtype)
    if dtype.kind == "O":
        return _discrete(tensor, list(facts_of(tensor, flow)), OneOf(_WORDS), "any words")
    if dtype.kind == "b":
        return InputRule(Constant(1), HIDES_NOTHING) if "mask" in tensor.name.lower() else None
    if dtype.kind not in "iu":
        return float_rule(tensor, flow) or STANDARD
    facts = list(facts_of(tensor, flow))
    if "mask" in tensor.name.lower() and not any(fact.is_must for fact in facts):
        facts.append(Fact(HIDES_NOTHING, values=(1,)))
    limits = np.iinfo(dtype)
    if dtype.itemsize == 1:
        usual, why = Integers(int(limits.min), int(limits.max)), f"all values of {dtype}"
    else:
        usual, why = _BYTES, _OPEN
    return _discrete(tensor, facts, usual, why)


def _discrete(tensor: TensorLike, facts: Sequence[Fact], usual: Draw, why: str) -> InputRule:
    """Returns one part for all of the input, or one for each column where facts are about some."""
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
    """Returns the values that all facts allow. A wish that contradicts the others is left out."""
    if isinstance(usual, OneOf):
        return _of_texts(facts) or usual
    must = [fact for fact in facts if fact.is_must]
    wishes = [fact for fact in facts if not fact.is_must]
    found = _Allowed()
    for fact in (*must, *wishes):
        found = found.narrowed(fact)
    return found.part(usual)


def _of_texts(facts: Sequence[Fact]) -> OneOf | None:
    known = [fact for fact in facts if any(isinstance(value, str) for value in fact.values)]
    if not known:
        return None
    shared = [v for v in known[0].values if all(v in fact.values for fact in known)]
    return OneOf(tuple(shared or known[0].values), words=known[0].words)


class _Allowed:
    """Integers between two bounds, or some of these values."""

    def __init__(
        self, low: int | None = None, high: int | None = None, values: tuple[int, ...] = ()
    ) -> None:
        self._low, self._high, self._values = low, high, values

    def narrowed(self, fact: Fact) -> _Allowed:
        """Returns what the fact leaves, or the same where that would be nothing."""
        low, high = _higher(self._low, fact.low), _lower(self._high, fact.high)
        given = tuple(value for value in fact.values if isinstance(value, int))
        values = _shared(self._values, given)
        inside = tuple(value for value in values if _is_between(value, low, high))
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


def _higher(one: int | None, other: float | None) -> int | None:
    return max((int(bound) for bound in (one, other) if bound is not None), default=None)


def _lower(one: int | None, other: float | None) -> int | None:
    return min((int(bound) for bound in (one, other) if bound is not None), default=None)


def _shared(one: tuple[int, ...], other: tuple[int, ...]) -> tuple[int, ...]:
    """The values of both, or of the first where they have none in common."""
    return tuple(value for value in one if value in other) or one or other


def _is_between(value: int, low: int | None, high: int | None) -> bool:
    return (low is None or value >= low) and (high is None or value <= high)
