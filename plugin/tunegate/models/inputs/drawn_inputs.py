"""The inputs of a prepared model with the values that they get: given by the user, those of the
base, or inferred; and tried, where the model may refuse them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import numpy as np
import onnx

from tunegate.artifacts.inputs import (
    Columns,
    Constant,
    Files,
    InputRule,
    Integers,
    KnownInputs,
    Normal,
    Uniform,
)
from tunegate.errors import ModelError
from tunegate.models.inputs.agreement import is_alike, met
from tunegate.models.inputs.inferred_rules import inferred_rules
from tunegate.models.model_inputs import made_of, stated_size
from tunegate.models.narrow_types import dtype_named, kind_of
from tunegate.models.prepared import PreparedModel, Tensor
from tunegate.models.reference.session import ReferenceSession, said
from tunegate.models.seeded_inputs import checked_feeds
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
    is_float = kind_of(dtype_named(tensor.dtype)) not in "iuO" and not tensor.form
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
