"""The inputs of a prepared model with rules for their values: given by the user, taken from the
base, or inferred, and tried if the model may reject them."""

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

import msgspec
import numpy as np
import onnx

from tunegate.artifacts.inputs import (
    DRAWN_LENGTH,
    STANDARD,
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
from tunegate.models.inputs.agreement import intersect_rules, is_alike
from tunegate.models.inputs.inferred_rules import inferred_rules, with_own_limit
from tunegate.models.inputs.trial import MOST_OUTPUT_BYTES, Trial
from tunegate.models.model_inputs import dtype_of, graph_inputs, kind_of_input, stated_size
from tunegate.models.narrow_types import dtype_named, kind_of
from tunegate.models.prepared import PreparedModel, Tensor
from tunegate.models.reference.session import ReferenceSession
from tunegate.models.trial_messages import BUILT_SECONDS, Outcome, too_slow
from tunegate.system.onnx_scan import nodes_of
from tunegate.system.output.artifact_file import ArtifactTensor
from tunegate.system.processes.memory_limit import lowered_limit, memory_problem

_Rules = Mapping[str, InputRule | None]
_REFUSED = "ONNX Runtime refuses others"
_LIVELIER = "on standard normal numbers its outputs tell nothing"
_HIGHEST = (127, 63, 31, 15, 7, 3, 1, 0)
"""The largest integers to try if ONNX Runtime rejects larger ones."""
_INDEX_RANGE = re.compile(r"inclusive range \[-?\d+, ?(\d{1,9})\]")
_MAX_UNASKED_BYTES = 64 * 2**20
"""A larger model that accepts any floats is not run to check that its outputs tell something; one
with a loop is, which may have no end."""
_MOST_DRAWN_BYTES = 512 * 2**20
"""Whoever draws, checks and times inputs holds several sets of them, beside the outputs."""
_MOST_SHOWN_BYTES = 2**60
_LOOP_BYTES = 8 * 2**30
_TIMES_ITS_FILES = 8
"""The memory for the first inferences of a model with a loop."""
_IMAGE_RANK = 4
_PIXELS = (Uniform(0.0, 1.0), Uniform(0.0, 255.0))
_OTHERS = (Normal(0.0, 0.1), Uniform(0.0, 1.0), Normal(0.0, 10.0))


class RefusedInputsError(ModelError):
    """No inputs can be drawn on which ONNX Runtime runs; `problem` is the reason."""

    def __init__(self, message: str, problem: str) -> None:
        super().__init__(message)
        self.problem = problem


class TooSlowError(ModelError):
    """An inference of the model as it is takes too long to build it."""


class Drawing(NamedTuple):
    """The inputs with their rules, and the outcome of a run on them; None if there was no run.
    `session` is one of the model as written, if it was opened."""

    tensors: tuple[ArtifactTensor, ...]
    outcome: Outcome | None = None
    session: ReferenceSession | None = None


def draw_inputs(
    prepared: PreparedModel, known_inputs: KnownInputs, path: str, trial: Trial | None = None
) -> Drawing:
    """Returns the inputs with their rules, and the outcome of a run. Raises ModelError with ONNX
    Runtime's reason if it rejects all drawn values, or the given ones. `trial` is an existing one
    of the same model. Without it, raises TooSlowError if an inference is too slow to build it."""
    _require_values(prepared.inputs, known_inputs.given, path)
    # The likeliest rules first: they come from the graph, and from what is known of the inputs.
    model = _load_graph(prepared.original)
    _require_bounded(prepared.inputs, known_inputs.given, _open_sizes(model, prepared.inputs), path)
    own = _infer_rules(model, prepared.inputs)
    first, *others = _candidates(
        own, _base_rules(known_inputs.base, prepared.inputs), known_inputs.given
    )
    tensors = _add_rules(prepared.inputs, first)
    _require_shapes(tensors, path)
    runs = _Runs(prepared, model, path, trial)
    trial = trial or _trial(prepared, tensors, has_loop=runs.has_loop)
    if trial is None:
        return Drawing(tensors)
    # They are tried on the model: it must take them, and its outputs must tell something.
    outcome = runs.run(trial, tensors)
    if outcome.runs:
        if outcome.dull:
            return _livelier(trial, tensors, known_inputs.given) or Drawing(tensors, outcome)
        return Drawing(tensors, outcome, trial.session_as_written)
    # If it refuses them: other rules, then integers below bounds that it takes, then a message.
    for rules in others:
        inputs = _add_rules(prepared.inputs, rules)
        result = runs.run(trial, inputs)
        if result.runs:
            return Drawing(inputs, result)
    highest = (*_stated_bound(outcome.problem), *_HIGHEST)
    careful = _careful_rules(trial, prepared.inputs, own, known_inputs.given, highest)
    if careful is None:
        opened = _open_sizes(model, prepared.inputs)
        message = base_runs(known_inputs.base, path, tensors, outcome.problem)
        message = message or _refusal(path, tensors, known_inputs.given, outcome.problem, opened)
        raise RefusedInputsError(message, outcome.problem)
    inputs = _add_rules(prepared.inputs, careful)
    return Drawing(inputs, runs.run(trial, inputs))


def base_runs(base: str, path: str, tensors: tuple[ArtifactTensor, ...], problem: str) -> str:
    """Returns the message where the base, a file or '', runs on inputs on which the head has the
    `problem`; '' if it does not: then the values or the sizes are likely wrong."""
    if not base:
        return ""
    try:
        names = {value.name for value in graph_inputs(_load_graph(Path(base)).graph)}
        if names != {tensor.name for tensor in tensors}:
            return ""
        if not Trial(Path(base)).run(tensors, BUILT_SECONDS).runs:
            return ""
    except Exception:  # noqa: BLE001 -- a base that cannot be loaded is reported where it is built
        return ""
    return (
        f"{path}: ONNX Runtime runs the base on these inputs, and not the head ({problem}). The "
        "change to the model does that. If it is meant, give values that the head takes under "
        "inputs: in tunegate.yaml."
    )


class _Runs:
    """Runs of a model that is built next: they end in time, and those of a loop in memory that goes
    with the size of the model. Nothing else says how often a loop runs and how much it keeps.
    With an `existing` trial its owner has the limits."""

    def __init__(
        self, prepared: PreparedModel, model: onnx.ModelProto, path: str, existing: Trial | None
    ) -> None:
        self._prepared, self._model, self._path = prepared, model, path
        self._seconds = 0.0 if existing is not None else BUILT_SECONDS
        self.has_loop = any(node.op_type == "Loop" for node in nodes_of(model))

    def run(self, trial: Trial, tensors: Sequence[ArtifactTensor]) -> Outcome:
        """Runs the trial. Raises ModelError if it takes too much time or memory, and
        RefusedInputsError if its outputs do."""
        with self._bounded_memory():
            outcome = trial.run(tensors, self._seconds)
        if outcome.size_bytes > MOST_OUTPUT_BYTES:
            sizes = _open_sizes(self._model, self._prepared.inputs)
            raise _too_large("outputs", outcome.size_bytes, MOST_OUTPUT_BYTES, sizes, self._path)
        if not self._seconds:
            return outcome
        if outcome.is_late and outcome.seconds >= self._seconds:
            opened = _open_sizes(self._model, self._prepared.inputs)
            problem = too_slow(self._seconds, has_sizes=bool(opened))
            raise TooSlowError(f"{self._path}: {problem}.")
        return outcome

    @contextmanager
    def _bounded_memory(self) -> Iterator[None]:
        if not (self.has_loop and self._seconds):
            yield
            return
        files = filter(None, (self._prepared.original, self._prepared.weights))
        size = sum(file.stat().st_size for file in files)
        with lowered_limit(_LOOP_BYTES + _TIMES_ITS_FILES * size):
            try:
                yield
            except Exception as error:
                problem = memory_problem(error)
                if not problem:
                    raise
                raise ModelError(f"{self._path}: {problem}.") from error


def _trial(
    prepared: PreparedModel, tensors: Sequence[ArtifactTensor], *, has_loop: bool
) -> Trial | None:
    """Returns a trial, None if there is nothing to try, or ONNX Runtime cannot load the model: the
    build reports that."""
    is_safe = all(_is_taken_by_all(tensor) for tensor in tensors)
    if is_safe and not has_loop and prepared.original.stat().st_size > _MAX_UNASKED_BYTES:
        return None
    try:
        return Trial(prepared.original, is_light=is_safe)
    except Exception:  # noqa: BLE001 -- its errors have no common base class
        return None


def _livelier(
    trial: Trial, tensors: tuple[ArtifactTensor, ...], given_rules: _Rules
) -> Drawing | None:
    """Returns the inputs with other floats if the outputs on standard normal ones tell nothing."""
    free = [t for t in tensors if t.rule == STANDARD and t.name not in given_rules]
    kinds = {len(t.shape) == _IMAGE_RANK for t in free}
    for values in (*(_PIXELS if True in kinds else ()), *(_OTHERS if False in kinds else ())):
        rule = InputRule(values, _LIVELIER)
        inputs = tuple(
            msgspec.structs.replace(tensor, rule=rule) if tensor in free else tensor
            for tensor in tensors
        )
        outcome = trial.run(inputs)
        if outcome.runs and not outcome.dull and not outcome.is_late:
            return Drawing(inputs, outcome)
    return None


def _stated_bound(problem: str) -> tuple[int, ...]:
    """Returns the largest index, if ONNX Runtime's error states which it accepts."""
    match = _INDEX_RANGE.search(problem)
    return () if match is None else (int(match[1]),)


def _careful_rules(
    trial: Trial,
    inputs: tuple[Tensor, ...],
    own: _Rules,
    given_rules: _Rules,
    highest: Sequence[int],
) -> dict[str, InputRule | None] | None:
    """Returns rules with smaller integers, for as few inputs as possible; None if ONNX Runtime
    rejects them all."""
    tries = [
        {name: _careful(rule, min(1, low), high) for name, rule in own.items()} | dict(given_rules)
        for low, high in (*((0, high) for high in highest), (1, 1))
    ]
    new = [t for at, t in enumerate(tries) if t != dict(own) and t not in tries[:at]]
    accepted = next((t for t in new if not trial.refuses(_add_rules(inputs, t))), None)
    if accepted is None:
        return None
    for name, rule in own.items():
        if name not in given_rules and accepted[name] != rule:
            wider = accepted | {name: rule}
            if not trial.refuses(_add_rules(inputs, wider)):
                accepted = wider
    return accepted


def is_tried(rule: InputRule) -> bool:
    """Returns whether a trial chose the rule, not the graph or a name."""
    return rule.why in {_REFUSED, _LIVELIER}


def _load_graph(file: Path) -> onnx.ModelProto:
    return onnx.load(file, load_external_data=False)


def _infer_rules(model: onnx.ModelProto, tensors: Sequence[Tensor]) -> _Rules:
    """Returns the inferred rules, none for an odd graph, which must not raise."""
    try:
        return inferred_rules(model, tensors)
    except Exception:  # noqa: BLE001 -- graphs are others' work, and ONNX Runtime judges them
        return dict.fromkeys(tensor.name for tensor in tensors)


def _base_rules(file: str, tensors: tuple[Tensor, ...]) -> _Rules:
    """Returns the base's rules for inputs with the same name and shape, if one rule draws equal
    numbers in both types."""
    if not file:
        return {}
    try:
        model = _load_graph(Path(file))
    except Exception:  # noqa: BLE001 -- an unreadable base is reported where it is built
        return {}
    shared = [tensor for tensor in tensors if _has(model, tensor)]
    return _infer_rules(model, shared)


def _has(model: onnx.ModelProto, tensor: Tensor) -> bool:
    for value in model.graph.input:
        if value.name == tensor.name:
            form, kind, _ = kind_of_input(value)
            if form != tensor.form:
                return False
            dims = [*map(stated_size, kind.shape.dim)]
            dtype = dtype_of(kind)
            is_same = (
                bool(dtype) and is_alike(dtype, tensor.dtype) and len(dims) == len(tensor.shape)
            )
            return is_same and all(
                dim in {size, None} for dim, size in zip(dims, tensor.shape, strict=True)
            )
    return False


def _candidates(
    own: _Rules, base: _Rules, given_rules: _Rules
) -> Iterator[dict[str, InputRule | None]]:
    """Yields rules to try: the base's first, then what both allow, then the model's own."""
    base = {name: with_own_limit(rule, own[name]) for name, rule in base.items()}
    shared = {name: intersect_rules(rule, own[name]) for name, rule in base.items()}
    yield {**own, **base, **given_rules}
    if base:
        yield {**own, **shared, **given_rules}
        yield {**own, **given_rules}


def _careful(rule: InputRule | None, low: int, high: int) -> InputRule | None:
    """Returns integers that fit nearly everywhere instead of a wide range; narrower ranges stay."""
    if rule is None or not isinstance(rule.values, Integers | Columns):
        return rule
    if isinstance(rule.values, Columns) and not all(
        isinstance(part, Integers) for part in rule.values.parts
    ):
        return rule
    if isinstance(rule.values, Integers) and 0 <= rule.values.low <= rule.values.high <= high:
        return rule
    values = Constant(low) if low == high else Integers(low, high)
    return InputRule(values, _REFUSED)


def _add_rules(tensors: tuple[Tensor, ...], rules: _Rules) -> tuple[ArtifactTensor, ...]:
    return tuple(
        ArtifactTensor(t.name, () if t.is_open else t.shape, t.dtype, rules[t.name], t.form)
        for t in tensors
    )


def _is_taken_by_all(tensor: ArtifactTensor) -> bool:
    """Returns whether every model accepts such values: floats and booleans."""
    values = tensor.rule.values if tensor.rule is not None else None
    parts = values.parts if isinstance(values, Columns) else (values,)
    is_float = kind_of(dtype_named(tensor.dtype)) not in "iuO" and not tensor.form
    return is_float and all(
        part is None or isinstance(part, Normal | Uniform | Constant) for part in parts
    )


def _require_values(tensors: tuple[Tensor, ...], given_rules: _Rules, path: str) -> None:
    """Raises ModelError for a sequence whose tensors have unknown sizes: nothing can be drawn for
    it."""
    names = [
        tensor.name
        for tensor in tensors
        if tensor.is_open and not _is_in_files(given_rules, tensor)
    ]
    if names:
        raise ModelError(
            f"{path}: nothing says how large the tensors in {', '.join(names)} are. "
            f"Give values for {', '.join(names)} under inputs: in tunegate.yaml."
        )


def _is_in_files(given_rules: _Rules, tensor: Tensor) -> bool:
    rule = given_rules.get(tensor.name)
    return rule is not None and isinstance(rule.values, Files)


def _require_shapes(tensors: tuple[ArtifactTensor, ...], path: str) -> None:
    for tensor in tensors:
        values = tensor.rule.values if tensor.rule is not None else None
        is_checked = isinstance(values, Files) and not tensor.form
        for file in values.files if is_checked and isinstance(values, Files) else ():
            shape = np.load(file, mmap_mode="r", allow_pickle=False).shape
            if shape != tensor.shape:
                raise ModelError(
                    f"{path}: inputs.{tensor.name}.values has shape {list(shape)} "
                    f"instead of {list(tensor.shape)}."
                )


def _require_bounded(
    tensors: tuple[Tensor, ...], given_rules: _Rules, sizes: str, path: str
) -> None:
    """Raises RefusedInputsError if the drawn inputs take too much memory; files have a limit of
    their own. `sizes` are those that the model leaves open. Comes before any look at the graph:
    ONNX's inference of shapes takes time and memory by the length of an input, too."""
    size_bytes = sum(
        math.prod(tensor.shape)
        * dtype_named(tensor.dtype).itemsize
        * (DRAWN_LENGTH if "sequence" in tensor.form else 1)
        for tensor in tensors
        if not _is_in_files(given_rules, tensor)
    )
    if size_bytes > _MOST_DRAWN_BYTES:
        raise _too_large("inputs", size_bytes, _MOST_DRAWN_BYTES, sizes, path)


def _too_large(what: str, size_bytes: int, most: int, sizes: str, path: str) -> RefusedInputsError:
    shown = min(size_bytes, _MOST_SHOWN_BYTES) / 2**20
    problem = f"its {what} take {shown:,.0f} MiB at {sizes or 'the sizes that it states'}"
    verb = "drawn" if what == "inputs" else "compared"
    remedy = (
        "Give the sizes that you deploy with under dims: or inputs: in tunegate.yaml."
        if sizes
        else "Export it with the sizes that you deploy with."
    )
    message = f"{path}: {problem}, and at most {most >> 20:,} MiB are {verb}. {remedy}"
    return RefusedInputsError(message, problem)


def _open_sizes(model: onnx.ModelProto, tensors: Sequence[Tensor]) -> str:
    """Returns the sizes that the model leaves open, by symbol or position."""
    shapes = {tensor.name: tensor.shape for tensor in tensors}
    sizes = {
        value.symbol(axis) or f"{value.name}[{axis}]": shapes[value.name][axis]
        for value in graph_inputs(model.graph)
        for axis, size in enumerate(value.dimensions)
        if size is None and len(shapes.get(value.name, ())) > axis
    }
    return ", ".join(f"{name} {size}" for name, size in sizes.items())


def _refusal(
    path: str, tensors: tuple[ArtifactTensor, ...], given_rules: _Rules, problem: str, sizes: str
) -> str:
    invented = [
        tensor.name
        for tensor in tensors
        if tensor.name not in given_rules and not _is_taken_by_all(tensor)
    ]
    names = ", ".join(invented)
    if sizes and not given_rules:
        others = f" If these are right, give values for {names} under inputs:." if names else ""
        return (
            f"{path}: ONNX Runtime does not run at {sizes}, whatever the values ({problem}). "
            f"Give sizes that the model takes under dims: or inputs: in tunegate.yaml.{others}"
        )
    if not given_rules:
        return (
            f"{path}: ONNX Runtime does not run on values that were invented ({problem}). "
            f"Give values for {names or 'its inputs'} under inputs: in tunegate.yaml."
        )
    others = f" Or give values for {names} too, which were invented." if invented else ""
    return (
        f"{path}: ONNX Runtime does not run on the values that are given for "
        f"{', '.join(given_rules)} ({problem}). Change them under inputs: in tunegate.yaml.{others}"
    )
