"""Compares a build's numbers with the reference's: every output, on the inputs of every seed."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
import numpy as np
import onnx
from onnx import TensorProto, numpy_helper
from onnx.external_data_helper import uses_external_data

from tunegate.artifacts.builds import NumericCheck, OutputDifference
from tunegate.models.narrow_types import kind_of
from tunegate.models.reference import model_precision
from tunegate.models.reference.onnx_runtime import error_line
from tunegate.models.reference.row_pairs import Missing, RowPairs, behind_a_sort, may_be_missing
from tunegate.models.reference.session import LEVELS, ReferenceSession, session_as_written
from tunegate.models.reference.tolerance import differs, errors, is_numeric, other_dtype, tolerance
from tunegate.models.seeded_inputs import RuledTensor, checked_feeds
from tunegate.system.nvidia.device_errors import raise_lost_device
from tunegate.system.output.artifact_file import ArtifactFile
from tunegate.system.processes.memory_limit import lacked_memory


class DidNotRun(NamedTuple):
    """The runtime's reason why an inference failed; the reference's if `of_reference`. `memory`:
    there was too little of it, on the device or the machine."""

    reason: str
    of_reference: bool = False
    memory: bool = False


_Allowed = Callable[[int, str], float]
"""Returns the allowed relative error of an output, by its index and dtype."""
RANDOM = "its outputs are random: ONNX Runtime gives others each time"
_UNCHECKED = NumericCheck(passed=True, max_absolute=0.0, max_relative=0.0, tolerance=0.0)


def compare_outputs(
    run: Callable[[Mapping[str, Any]], Sequence[Any]],
    reference: Callable[[], Reference],
    artifact: ArtifactFile,
    *,
    with_own_noise: bool = True,
) -> NumericCheck | DidNotRun:
    """Compares what a build computes with the reference; the worst error decides. If an error is
    too large for its dtype, the reference's own noise is measured and added to the tolerance. The
    check says how far ONNX Runtime's own optimizations are off, `with_own_noise`."""
    try:
        right = reference()
    except Exception as error:  # noqa: BLE001 -- its errors have no common base class
        return DidNotRun(error_line(error), of_reference=True, memory=lacked_memory(error))
    expected = right.expected
    try:
        outputs = [run(feed) for feed in right.feeds]
    except Exception as error:  # noqa: BLE001 -- runtimes' errors have no common base class
        raise_lost_device(error)
        return DidNotRun(error_line(error), memory=lacked_memory(error))
    # Most builds pass, or fail for good, by the usual tolerance of each output's dtype.
    worst = _worst_check(artifact, outputs, expected, _usual)
    problem = _broken_promise(artifact, right.names, outputs) if worst.passed else ""
    problem = RANDOM if not worst.passed and right.is_random else problem
    if problem:
        return msgspec.structs.replace(worst, passed=False, detail=problem)
    if not worst.passed and worst.max_relative:
        # Numbers too far off may still be right: equal rows in another order, or an error that the
        # reference's own variants have too.
        in_sets = _check_as_sets(artifact, right, outputs)
        if in_sets is not None:
            return in_sets
        noise = right.noise
        # Rows in another order say nothing about noise.
        is_sorted = [name in right.sorted_names for name in right.names]

        def allowed_error(at: int, dtype: str) -> float:
            return right.precision.allowed_error(dtype, 0.0 if is_sorted[at] else noise[at])

        worst = _worst_check(artifact, outputs, expected, allowed_error)
        worst = msgspec.structs.replace(worst, reference_noise=max(noise))
    off = right.optimized_error if with_own_noise and worst.passed else 0.0
    return msgspec.structs.replace(worst, as_written=True, reference_noise=off) if off else worst


def is_random(model: Path, feed: Mapping[str, Any]) -> bool:
    """Returns whether the reference itself gives other numbers when it runs again."""
    with suppress(Exception):  # its errors have no common base class
        session, first = session_as_written(model, feed)
        for was, now in zip(first, session.run(feed), strict=True):
            pairs, other = _pair_arrays(now, was)
            if other or any(differs(ours.array, theirs.array) for ours, theirs in pairs):
                return True
    return False


def _check_as_sets(
    artifact: ArtifactFile, right: Reference, actual: Sequence[Sequence[Any]]
) -> NumericCheck | None:
    """Checks rows behind a sort as sets. Returns None if there are no such rows, or the check fails
    even so. A row may be missing where the reference's own variants lose rows."""
    if not right.sorted_names:
        return None
    tables = [RowPairs(right.names, right.sorted_names, outputs) for outputs in right.expected]
    aligned = [table.align(outputs) for table, outputs in zip(tables, actual, strict=True)]
    check = _worst_check(artifact, [outputs for outputs, _ in aligned], right.expected, _usual)
    if not check.passed:
        return None
    if not any(mask.any() for _, missing in aligned for mask in missing.values()):
        return check
    of_variants: list[list[Missing]] = [[] for _ in tables]
    for session in _variants(right.model, seeds=_MOVED_SEEDS):
        # Rows may be missing only where the reference's variants lose rows, too.
        for feed, table, missing_rows in zip(right.feeds, tables, of_variants, strict=True):
            with suppress(Exception):  # a variant that does not run says nothing
                missing_rows.append(table.align(session.run(feed))[1])
    is_rounding = all(
        may_be_missing(missing, missing_rows)
        for (_, missing), missing_rows in zip(aligned, of_variants, strict=True)
    )
    return check if is_rounding else None


class Reference:
    """A model as ONNX Runtime computes it, without optimizations if that is exact, on the inputs of
    each seed and each case that the user gave. What it tells about itself is measured once, and
    only if needed: ONNX Runtime takes half a minute to open some models."""

    def __init__(
        self,
        model: Path,
        inputs: Sequence[RuledTensor],
        seeds: Sequence[int],
        opened: ReferenceSession | None = None,
    ) -> None:
        """`opened` is a session of the model as written. Raises ONNX Runtime's error if the model
        runs neither with nor without optimizations."""
        self.model, self.feeds = model, checked_feeds(inputs, seeds)
        proto = onnx.load(model, load_external_data=False)
        self.sorted_names = behind_a_sort(proto)
        """The outputs behind a sort."""
        self.precision = model_precision.precision_of(proto.graph)
        session, first = session_as_written(model, self.feeds[0], opened)
        self.names, self._is_written = session.outputs, session.is_written
        self.expected = [first, *map(session.run, self.feeds[1:])]

    @cached_property
    def is_random(self) -> bool:
        return is_random(self.model, self.feeds[0])

    @cached_property
    def noise(self) -> list[float]:
        """The largest error of each output over all inputs, relative to its largest magnitude.
        Variants that do not run are skipped."""
        noise = [0.0] * max(map(len, self.expected), default=0)
        for session in _variants(self.model):
            for feed, outputs in zip(self.feeds, self.expected, strict=True):
                for at, relative in enumerate(_relative_errors(session, feed, outputs)):
                    noise[at] = max(noise[at], relative)
        return noise

    @cached_property
    def optimized_error(self) -> float:
        """The error of ONNX Runtime's own optimizations, 0 unless it is more than any build may
        have."""
        noise = [0.0]
        if not self._is_written:
            return 0.0
        with suppress(Exception):  # its errors have no common base class
            session = ReferenceSession(self.model)
            for feed, outputs in zip(self.feeds, self.expected, strict=True):
                offs = _relative_errors(session, feed, outputs)
                for off, theirs in zip(offs, outputs, strict=True):
                    is_more = off > 0 and off > self.precision.allowed_error(str(theirs.dtype), 1.0)
                    noise.append(off if is_more else 0.0)
        return max(noise)


def _broken_promise(
    artifact: ArtifactFile, names: Sequence[str], actual: Sequence[Sequence[Any]]
) -> str:
    """Returns where an artifact declares other outputs than the model has, or than it gives, '' if
    it does not. Ranks are compared, not sizes, which may depend on input values."""
    said_names = [output.name for output in artifact.outputs]
    if said_names != list(names):
        return f"its outputs are {', '.join(said_names)} instead of {', '.join(names)}"[:300]
    for outputs in actual:
        for tensor, value in zip(artifact.outputs, outputs, strict=True):
            if not isinstance(value, np.ndarray) or not is_numeric(value):
                continue
            shape, dtype = kind(value)
            if (dtype, len(shape)) != (tensor.dtype, len(tensor.shape)):
                return (
                    f"output {tensor.name} is {dtype} of rank {len(shape)}, and its artifact says "
                    f"{tensor.dtype} of rank {len(tensor.shape)}"
                )
    return ""


def _usual(_: int, dtype: str) -> float:
    return tolerance(dtype)


def _worst_check(
    artifact: ArtifactFile,
    actual: Sequence[Sequence[Any]],
    expected: Sequence[Sequence[Any]],
    allowed: _Allowed,
) -> NumericCheck:
    worst = _UNCHECKED
    for ours, theirs in zip(actual, expected, strict=True):
        worst = _worse(worst, artifact, ours, theirs, allowed)
    return msgspec.structs.replace(worst, passed=not worst.detail)


def _worse(
    so_far: NumericCheck,
    artifact: ArtifactFile,
    actual: Sequence[Any],
    expected: Sequence[Any],
    allowed: _Allowed,
) -> NumericCheck:
    worst = {output.name: output for output in so_far.outputs}
    most, detail = so_far.tolerance, so_far.detail
    if len(actual) != len(expected):
        detail = f"{len(actual)} outputs instead of {len(expected)}"
    outputs_of_both = zip(artifact.outputs, actual, expected, strict=False)
    # Keep the first difference in words, and the worst errors of each output.
    for at, (tensor, ours, theirs) in enumerate(outputs_of_both):
        pairs, other = _pair_arrays(ours, theirs)
        detail = detail or (f"output {tensor.name} is {other}" if other else "")
        for part, should_be in pairs:
            limit = allowed(at, str(should_be.array.dtype))
            wrong = other_dtype(part.array, should_be.array)
            wrong = wrong or differs(part.array, should_be.array, limit)
            where = f"output {tensor.name} {should_be.place}".rstrip()
            detail = detail or (f"{where} is {wrong}" if wrong else "")
            part_errors = _errors(part.array, should_be.array)
            worst[tensor.name] = _worst_of(tensor.name, worst.get(tensor.name), *part_errors)
            most = max(most, limit)
    outputs = tuple(worst.values())
    return NumericCheck(
        passed=not detail,
        max_absolute=max((output.max_absolute for output in outputs), default=0.0),
        max_relative=max((output.max_relative for output in outputs), default=0.0),
        tolerance=most,
        detail=detail,
        outputs=outputs,
    )


def _pair_arrays(actual: Any, expected: Any) -> tuple[list[tuple[PlacedArray, PlacedArray]], str]:
    """Returns the pairs of arrays to compare, and a message if different arrays are present."""
    ours, theirs = list(arrays_in(actual)), list(arrays_in(expected))
    places, should_be = ([part.place for part in each] for each in (ours, theirs))
    if places != should_be:
        structures = f"{_join_places(places)} instead of {_join_places(should_be)}"
        return [], f"of another structure: {structures}"
    return list(zip(ours, theirs, strict=True)), ""


def _join_places(places: Sequence[str]) -> str:
    return ", ".join(place or "a tensor" for place in places[:3])[:100]


def _errors(actual: Any, expected: Any) -> tuple[float, float]:
    if actual.shape != expected.shape or not (is_numeric(actual) and is_numeric(expected)):
        return 0.0, 0.0
    return errors(actual, expected)


def _worst_of(
    name: str, before: OutputDifference | None, absolute: float, relative: float
) -> OutputDifference:
    if before is not None:
        absolute = max(absolute, before.max_absolute)
        relative = max(relative, before.max_relative)
    return OutputDifference(name=name, max_absolute=absolute, max_relative=relative)


# The arrays in an output: a tensor is one; a sequence or a map has several.


class PlacedArray(NamedTuple):
    """An array and its position in its output, '' if it is the output. Equal positions mean equal
    structure."""

    place: str
    array: Any


def arrays_in(value: Any, place: str = "") -> Iterator[PlacedArray]:
    """Yields the arrays of a tensor, a sequence, a map, a sequence of maps, or an absent optional
    value."""
    if value is None:
        yield PlacedArray(f"{place} (absent)".lstrip(), np.empty(0))
    elif isinstance(value, Mapping):
        yield from _map_arrays([value], place)
    elif not isinstance(value, list | tuple):
        yield PlacedArray(place, np.asarray(value))
    elif value and all(isinstance(each, Mapping) for each in value):
        yield from _map_arrays(value, place)
    else:
        yield PlacedArray(f"{place} ({len(value)} long)".lstrip(), np.empty(0))
        for at, each in enumerate(value):
            yield from arrays_in(each, f"{place}[{at}]")


def kind(value: Any) -> tuple[tuple[int, ...], str]:
    """Returns the shape of an output and NumPy's name of its dtype; a non-tensor has no shape, and
    its form as the name."""
    if value is None:
        return (), "optional"
    if isinstance(value, Mapping):
        return (), "map"
    if isinstance(value, list | tuple):
        kinds = {kind(each)[1] for each in value}
        return (), f"sequence({kinds.pop()})" if len(kinds) == 1 else "sequence"
    array = np.asarray(value)
    return tuple(array.shape), str(array.dtype)


def _map_arrays(maps: Sequence[Mapping[Any, Any]], place: str) -> Iterator[PlacedArray]:
    """Yields the keys of all maps, and their values: a classifier's hundred maps are one table.
    Floats have lost their type, and count as float32."""
    where = f"{place} ({len(maps)} maps)".lstrip()
    keys = [(at, key) for at, each in enumerate(maps) for key in sorted(each)]
    yield PlacedArray(
        f"{where} keys", np.array([f"{at}: {key!r}" for at, key in keys], dtype=object)
    )
    values = np.asarray([maps[at][key] for at, key in keys])
    is_float = values.dtype.kind == "f"
    yield PlacedArray(f"{where} values", values.astype(np.float32) if is_float else values)


# Measures the noise of the reference: no build can be closer to it than that. Its optimization
# levels sum in another order and quantize at other points. If all of them share an order, weights
# moved by the rounding of a sum show the effect of rounding alone: a model that subtracts nearly
# equal sums makes it visible.

_MOVES: dict[int, float] = {
    TensorProto.FLOAT16: 2**-10,
    TensorProto.FLOAT: 2**-20,
    TensorProto.DOUBLE: 2**-49,
}
"""Relative distances: computing with weights moved this far is as exact as summing some hundred
products in that type."""
_MAX_BYTES = 2**30
"""The largest model whose weights are moved, in bytes."""
_SEED = 1
_MOVED_SEEDS = (1, 2, 3, 4)


def _variants(model: Path, seeds: Sequence[int] = (_SEED,)) -> Iterator[ReferenceSession]:
    """Yields the model at other levels, and with weights moved by each seed; only one is open at a
    time."""
    for level in LEVELS:
        with suppress(Exception):  # the errors of ONNX Runtime have no common base class
            yield ReferenceSession(model, level=level)
    for seed in seeds:
        moved_model = _move_weights(model, seed)
        if moved_model:
            with suppress(Exception):
                yield ReferenceSession(moved_model)


def _relative_errors(
    session: ReferenceSession, feed: Mapping[str, Any], expected: Sequence[Any]
) -> Iterator[float]:
    """Yields the error of each output, 0 unless both are tensors of one shape with float or
    quantized numbers; nothing if the session does not run."""
    try:
        outputs = session.run(feed)
    except Exception:  # noqa: BLE001 -- likewise
        return
    for ours, theirs in zip(outputs, expected, strict=True):
        is_one_kind = _is_inexact(ours) and _is_inexact(theirs) and ours.shape == theirs.shape
        yield errors(ours, theirs)[1] if is_one_kind else 0.0


def _is_inexact(value: Any) -> bool:
    return isinstance(value, np.ndarray) and (
        kind_of(value.dtype) == "f" or str(value.dtype) in model_precision.QUANTIZED
    )


def _move_weights(model: Path, seed: int) -> bytes:
    """Returns the model with each weight moved a little up or down; b"" if it is too large."""
    proto = onnx.load(model, load_external_data=False)
    if proto.ByteSize() > _MAX_BYTES or any(map(uses_external_data, proto.graph.initializer)):
        return b""
    random = np.random.default_rng(seed)
    for tensor in model_precision.constant_weights(proto.graph):
        move = _MOVES.get(tensor.data_type)
        if move is not None:
            value = numpy_helper.to_array(tensor)
            signs = random.integers(0, 2, value.shape) * 2 - 1
            moved_value = (value * (1 + signs * move)).astype(value.dtype)
            tensor.CopyFrom(numpy_helper.from_array(moved_value, tensor.name))
    return bytes(proto.SerializeToString())
