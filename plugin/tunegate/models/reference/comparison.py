"""A build's numbers beside those of the reference: every output, on the inputs of every seed."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
import numpy as np
import onnx
from onnx import TensorProto, numpy_helper
from onnx.external_data_helper import uses_external_data

from tunegate.artifacts.builds import NumericCheck, OutputDifference
from tunegate.models.narrow_types import kind_of
from tunegate.models.reference.model_precision import (
    QUANTIZED,
    ModelPrecision,
    constant_weights,
    precision_of,
)
from tunegate.models.reference.onnx_runtime import said
from tunegate.models.reference.session import LEVELS, ReferenceSession, session_as_written
from tunegate.models.reference.sorted_rows import Missing, RowPairs, behind_a_sort, may_be_missing
from tunegate.models.reference.tolerance import differs, errors, is_numeric, other_dtype, tolerance
from tunegate.models.seeded_inputs import checked_feeds
from tunegate.system.nvidia.device_errors import raise_lost_device
from tunegate.system.output.artifact_file import ArtifactFile


class DidNotRun(NamedTuple):
    """The runtime's reason why an inference failed; that of the reference where `of_reference`."""

    reason: str
    of_reference: bool = False


_Allowed = Callable[[int, str], float]
"""The allowed relative error of an output, by its place and its dtype."""
_UNCHECKED = NumericCheck(passed=True, max_absolute=0.0, max_relative=0.0, tolerance=0.0)


def compared(
    run: Callable[[Mapping[str, Any]], Sequence[Any]],
    reference: Path,
    artifact: ArtifactFile,
    seeds: Sequence[int],
) -> NumericCheck | DidNotRun:
    """Runs the inputs of each seed through both, and each case that the user gave; the worst error
    decides. The reference is the model as it is written, without optimizations. Where one is too
    large by its dtype, how far the reference is from itself is measured, and counts."""
    feeds = checked_feeds(artifact.inputs, seeds)
    try:
        right = _reference(reference, feeds)
    except Exception as error:  # noqa: BLE001 -- its errors have no common base class
        return DidNotRun(said(error), of_reference=True)
    expected = right.expected
    try:
        got = [run(feed) for feed in feeds]
    except Exception as error:  # noqa: BLE001 -- runtimes' errors have no common base class
        raise_lost_device(error)
        return DidNotRun(said(error))
    worst = _worst(artifact, got, expected, _usual)
    broken = _broken_promise(artifact, right.names, got) if worst.passed else ""
    if broken:
        return msgspec.structs.replace(worst, passed=False, detail=broken)
    precision = precision_of(reference)
    if worst.passed or not worst.max_relative:
        return _with_optimized(worst, right, reference, feeds, precision)
    in_sets = _as_sets(artifact, reference, right, feeds, got)
    if in_sets is not None:
        return in_sets
    noise = own_noise(reference, feeds, expected)
    # Rows in another order are no noise of their numbers.
    is_sorted = [name in right.sorted_names for name in right.names]

    def allowed(at: int, dtype: str) -> float:
        return precision.allowed(dtype, 0.0 if is_sorted[at] else noise[at])

    again = _worst(artifact, got, expected, allowed)
    again = msgspec.structs.replace(again, reference_noise=max(noise))
    return _with_optimized(again, right, reference, feeds, precision)


def _as_sets(
    artifact: ArtifactFile,
    model: Path,
    right: _Reference,
    feeds: Sequence[Mapping[str, Any]],
    got: Sequence[Sequence[Any]],
) -> NumericCheck | None:
    """The check with rows behind a sort as sets; None where there are none, or where it does not
    pass so, either. A row that comes and goes is allowed where the reference's own rows do."""
    if not right.sorted_names:
        return None
    tables = [RowPairs(right.names, right.sorted_names, wanted) for wanted in right.expected]
    aligned = [table.aligned(outputs) for table, outputs in zip(tables, got, strict=True)]
    check = _worst(artifact, [outputs for outputs, _ in aligned], right.expected, _usual)
    if not check.passed:
        return None
    if not any(lost.any() for _, missing in aligned for lost in missing.values()):
        return check
    of_variants: list[list[Missing]] = [[] for _ in feeds]
    for session in _variants(model, seeds=_MOVED_SEEDS):
        for feed, table, found in zip(feeds, tables, of_variants, strict=True):
            with suppress(Exception):  # a variant that does not run says nothing
                found.append(table.aligned(session.run(feed))[1])
    is_rounding = all(
        may_be_missing(missing, found)
        for (_, missing), found in zip(aligned, of_variants, strict=True)
    )
    return check if is_rounding else None


class _Reference(NamedTuple):
    """The names of the outputs, and what they should be; `is_written`: without optimizations.
    `sorted_names` are those of outputs behind a sort."""

    names: tuple[str, ...]
    expected: list[Sequence[Any]]
    is_written: bool
    sorted_names: frozenset[str]


def _reference(model: Path, feeds: Sequence[Mapping[str, Any]]) -> _Reference:
    """Raises what ONNX Runtime raises where it runs the model in neither way."""
    behind = behind_a_sort(onnx.load(model, load_external_data=False))
    session, first = session_as_written(model, feeds[0])
    expected = [first, *(session.run(feed) for feed in feeds[1:])]
    return _Reference(session.outputs, expected, session.is_written, behind)


def _with_optimized(
    check: NumericCheck,
    right: _Reference,
    reference: Path,
    feeds: Sequence[Mapping[str, Any]],
    precision: ModelPrecision,
) -> NumericCheck:
    """Tells how far ONNX Runtime's own optimizations are off, where no build might be so far."""
    if not right.is_written or not check.passed:
        return check
    found = [0.0]
    with suppress(Exception):  # its errors have no common base class
        session = ReferenceSession(reference)
        for feed, wanted in zip(feeds, right.expected, strict=True):
            for ours, theirs in zip(session.run(feed), wanted, strict=True):
                off = _relative_error(ours, theirs)
                is_more = off > 0 and off > precision.allowed(str(theirs.dtype), 1.0)
                found.append(off if is_more else 0.0)
    off = max(found)
    return msgspec.structs.replace(check, as_written=True, reference_noise=off) if off else check


def _broken_promise(
    artifact: ArtifactFile, names: Sequence[str], got: Sequence[Sequence[Any]]
) -> str:
    """Returns where an artifact says other outputs than the model has, or than it gives; '' where
    it does not. A size may follow the values of the inputs, so ranks count."""
    said_names = [each.name for each in artifact.outputs]
    if said_names != list(names):
        return f"its outputs are {', '.join(said_names)} instead of {', '.join(names)}"[:300]
    for outputs in got:
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


def _worst(
    artifact: ArtifactFile,
    got: Sequence[Sequence[Any]],
    expected: Sequence[Sequence[Any]],
    allowed: _Allowed,
) -> NumericCheck:
    worst = _UNCHECKED
    for ours, theirs in zip(got, expected, strict=True):
        worst = _worse(worst, artifact, ours, theirs, allowed)
    return msgspec.structs.replace(worst, passed=not worst.detail)


def _worse(
    so_far: NumericCheck,
    artifact: ArtifactFile,
    got: Sequence[Any],
    expected: Sequence[Any],
    allowed: _Allowed,
) -> NumericCheck:
    worst = {output.name: output for output in so_far.outputs}
    most, detail = so_far.tolerance, so_far.detail
    if len(got) != len(expected):
        detail = f"{len(got)} outputs instead of {len(expected)}"
    outputs_of_both = zip(artifact.outputs, got, expected, strict=False)
    for at, (tensor, ours, theirs) in enumerate(outputs_of_both):
        pairs, other = _paired(ours, theirs)
        detail = detail or (f"output {tensor.name} is {other}" if other else "")
        for part, should_be in pairs:
            limit = allowed(at, str(should_be.array.dtype))
            wrong = other_dtype(part.array, should_be.array)
            wrong = wrong or differs(part.array, should_be.array, limit)
            where = f"output {tensor.name} {should_be.place}".rstrip()
            detail = detail or (f"{where} is {wrong}" if wrong else "")
            found = _errors(part.array, should_be.array)
            worst[tensor.name] = _worst_of(tensor.name, worst.get(tensor.name), *found)
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


def _paired(got: Any, expected: Any) -> tuple[list[tuple[PlacedArray, PlacedArray]], str]:
    """Returns the pairs of arrays to compare, and a message where others are present."""
    ours, theirs = list(arrays_in(got)), list(arrays_in(expected))
    places, should_be = ([part.place for part in each] for each in (ours, theirs))
    if places != should_be:
        return [], f"of another structure: {_named(places)} instead of {_named(should_be)}"
    return list(zip(ours, theirs, strict=True)), ""


def _named(places: Sequence[str]) -> str:
    return ", ".join(place or "a tensor" for place in places[:3])[:100]


def _errors(got: Any, expected: Any) -> tuple[float, float]:
    if got.shape != expected.shape or not (is_numeric(got) and is_numeric(expected)):
        return 0.0, 0.0
    return errors(got.astype("float64"), expected.astype("float64"))


def _worst_of(
    name: str, before: OutputDifference | None, absolute: float, relative: float
) -> OutputDifference:
    if before is not None:
        absolute = max(absolute, before.max_absolute)
        relative = max(relative, before.max_relative)
    return OutputDifference(name=name, max_absolute=absolute, max_relative=relative)


# The arrays inside of an output: a tensor is one, and a sequence or a map has several.


class PlacedArray(NamedTuple):
    """An array, and where in its output it is: '' where it is the output. Equal places of two
    outputs mean equal structure."""

    place: str
    array: Any


def arrays_in(value: Any, place: str = "") -> Iterator[PlacedArray]:
    """Yields the arrays of a tensor, a sequence, a map, a sequence of maps, or an optional value
    that is absent."""
    if value is None:
        yield PlacedArray(f"{place} (absent)".lstrip(), np.empty(0))
    elif isinstance(value, Mapping):
        yield from _of_maps([value], place)
    elif not isinstance(value, list | tuple):
        yield PlacedArray(place, np.asarray(value))
    elif value and all(isinstance(each, Mapping) for each in value):
        yield from _of_maps(value, place)
    else:
        yield PlacedArray(f"{place} ({len(value)} long)".lstrip(), np.empty(0))
        for at, each in enumerate(value):
            yield from arrays_in(each, f"{place}[{at}]")


def kind(value: Any) -> tuple[tuple[int, ...], str]:
    """Returns the shape of an output and NumPy's name of its dtype; what is no tensor has no shape,
    and says what it is."""
    if value is None:
        return (), "optional"
    if isinstance(value, Mapping):
        return (), "map"
    if isinstance(value, list | tuple):
        kinds = {kind(each)[1] for each in value}
        return (), f"sequence({kinds.pop()})" if len(kinds) == 1 else "sequence"
    array = np.asarray(value)
    return tuple(array.shape), str(array.dtype)


def _of_maps(maps: Sequence[Mapping[Any, Any]], place: str) -> Iterator[PlacedArray]:
    """The keys of all of them, and the values: a classifier's hundred maps are a table. Their
    floats have lost their type: they are taken for the usual one."""
    where = f"{place} ({len(maps)} maps)".lstrip()
    keys = [(at, key) for at, each in enumerate(maps) for key in sorted(each)]
    yield PlacedArray(
        f"{where} keys", np.array([f"{at}: {key!r}" for at, key in keys], dtype=object)
    )
    values = np.asarray([maps[at][key] for at, key in keys])
    is_float = values.dtype.kind == "f"
    yield PlacedArray(f"{where} values", values.astype(np.float32) if is_float else values)


# The noise of the reference: no build can be asked to be closer to it than that. Its optimization
# levels add up in another order and quantize at other places. Where all of them share an order,
# weights that are moved by as much as a sum is rounded show what rounding alone does: a model that
# takes the difference of nearly equal sums turns it into numbers that can be seen.

_MOVES: dict[int, float] = {
    TensorProto.FLOAT16: 2**-10,
    TensorProto.FLOAT: 2**-20,
    TensorProto.DOUBLE: 2**-49,
}
"""Relative distances: to compute with weights that far away is as exact as to add up some hundred
products in that type."""
_MAX_BYTES = 2**30
"""The largest model whose weights are moved."""
_SEED = 1
_MOVED_SEEDS = (1, 2, 3, 4)


def own_noise(
    model: Path, feeds: Sequence[Mapping[str, Any]], expected: Sequence[Sequence[Any]]
) -> tuple[float, ...]:
    """Returns the largest error of each output, relative to its largest magnitude, over all feeds.
    A variant of the reference that does not run says nothing."""
    noise = [0.0] * max(map(len, expected), default=0)
    for session in _variants(model):
        for feed, wanted in zip(feeds, expected, strict=True):
            for at, relative in enumerate(_relative_errors(session, feed, wanted)):
                noise[at] = max(noise[at], relative)
    return tuple(noise)


def _variants(model: Path, seeds: Sequence[int] = (_SEED,)) -> Iterator[ReferenceSession]:
    """The model at other levels, and with weights moved by each seed. One at a time is open."""
    for level in LEVELS:
        with suppress(Exception):  # the errors of ONNX Runtime have no common base class
            yield ReferenceSession(model, level=level)
    for seed in seeds:
        moved = _with_moved_weights(model, seed)
        if moved:
            with suppress(Exception):
                yield ReferenceSession(moved)


def _relative_errors(
    session: ReferenceSession, feed: Mapping[str, Any], expected: Sequence[Any]
) -> Iterator[float]:
    try:
        got = session.run(feed)
    except Exception:  # noqa: BLE001 -- likewise
        return
    for ours, theirs in zip(got, expected, strict=True):
        yield _relative_error(ours, theirs)


def _relative_error(ours: Any, theirs: Any) -> float:
    """0 where one of them is no tensor of floats or of quantized numbers, or has another shape."""
    if not (_is_inexact(ours) and _is_inexact(theirs)) or ours.shape != theirs.shape:
        return 0.0
    return errors(ours.astype("float64"), theirs.astype("float64"))[1]


def _is_inexact(value: Any) -> bool:
    return isinstance(value, np.ndarray) and (
        kind_of(value.dtype) == "f" or str(value.dtype) in QUANTIZED
    )


def _with_moved_weights(model: Path, seed: int) -> bytes:
    """The model, each of its weights a little up or down; nothing where it is too large."""
    proto = onnx.load(model, load_external_data=False)
    if proto.ByteSize() > _MAX_BYTES or any(map(uses_external_data, proto.graph.initializer)):
        return b""
    random = np.random.default_rng(seed)
    for tensor in constant_weights(proto.graph):
        move = _MOVES.get(tensor.data_type)
        if move is not None:
            value = numpy_helper.to_array(tensor)
            signs = random.integers(0, 2, value.shape) * 2 - 1
            moved = (value * (1 + signs * move)).astype(value.dtype)
            tensor.CopyFrom(numpy_helper.from_array(moved, tensor.name))
    return bytes(proto.SerializeToString())
