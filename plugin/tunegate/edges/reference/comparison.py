"""A build's numbers beside those of the reference: every output, on the inputs of every seed."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from tunegate.artifacts.builds import NumericCheck, OutputDifference
from tunegate.edges.models.seeded_inputs import checked_feeds
from tunegate.edges.nvidia.device_errors import raise_lost_device
from tunegate.edges.output.artifact_file import ArtifactFile
from tunegate.edges.reference.error_text import said
from tunegate.edges.reference.model_precision import precision_of
from tunegate.edges.reference.output_values import PlacedArray, arrays_in
from tunegate.edges.reference.own_noise import own_noise
from tunegate.edges.reference.session import NO_OPTIMIZATION, ReferenceSession
from tunegate.edges.reference.tolerance import differs, errors, is_numeric, tolerance


class DidNotRun(NamedTuple):
    """The runtime's reason why an inference failed."""

    reason: str


_WITHOUT_REFERENCE = "its numbers cannot be checked, ONNX Runtime does not run it"
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
    decides. Where one is too large by its dtype, how far the reference is from itself is measured,
    and counts. Who computes what is written is right, however the reference optimizes."""
    feeds = checked_feeds(artifact.inputs, seeds)
    try:
        session = ReferenceSession(reference)
        expected = [session.run(feed) for feed in feeds]
    except Exception as error:  # noqa: BLE001 -- its errors have no common base class
        return DidNotRun(f"{_WITHOUT_REFERENCE}: {said(error)}")
    try:
        got = [run(feed) for feed in feeds]
    except Exception as error:  # noqa: BLE001 -- runtimes' errors have no common base class
        raise_lost_device(error)
        return DidNotRun(said(error))
    worst = _worst(artifact, got, expected, _usual)
    if worst.passed or not worst.max_relative:
        return worst
    noise, precision = own_noise(reference, feeds, expected), precision_of(reference)

    def allowed(at: int, dtype: str) -> float:
        return precision.allowed(dtype, noise[at])

    again = _worst(artifact, got, expected, allowed)
    if not again.passed:
        written = _worst(artifact, got, _as_written(reference, feeds) or expected, allowed)
        again = msgspec.structs.replace(written, as_written=True) if written.passed else again
    return msgspec.structs.replace(again, reference_noise=max(noise))


def _as_written(reference: Path, feeds: Sequence[Mapping[str, Any]]) -> list[Sequence[Any]]:
    """The numbers without any optimization; none where the reference does not run so."""
    with suppress(Exception):  # its errors have no common base class
        session = ReferenceSession(reference, level=NO_OPTIMIZATION)
        return [session.run(feed) for feed in feeds]
    return []


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
            wrong = differs(part.array, should_be.array, limit)
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
