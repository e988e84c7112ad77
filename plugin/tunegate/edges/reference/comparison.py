"""A build's numbers beside those of the reference: every output, on the inputs of every seed."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
import numpy as np

from tunegate.artifacts.builds import NumericCheck, OutputDifference
from tunegate.edges.models.seeded_inputs import seeded_inputs
from tunegate.edges.output.artifact_file import ArtifactFile
from tunegate.edges.reference.session import ReferenceSession
from tunegate.edges.reference.tolerance import differs, errors, tolerance


class DidNotRun(NamedTuple):
    """What the runtime said of an inference."""

    reason: str


_UNCHECKED = NumericCheck(passed=True, max_absolute=0.0, max_relative=0.0, tolerance=0.0)


def compared(
    run: Callable[[Mapping[str, Any]], Sequence[Any]],
    reference: Path,
    artifact: ArtifactFile,
    seeds: Sequence[int],
) -> NumericCheck | DidNotRun:
    """Runs the inputs of each seed through both; the worst error decides."""
    session = ReferenceSession(reference)
    worst = _UNCHECKED
    for seed in seeds:
        feed = seeded_inputs(artifact.inputs, seed)
        expected = session.run(feed)
        try:
            got = run(feed)
        except Exception as error:  # noqa: BLE001 -- runtimes' errors have no common base class
            lines = str(error).strip().splitlines() or [type(error).__name__]
            return DidNotRun(lines[-1][:300])
        worst = _worse(worst, artifact, got, expected)
    return msgspec.structs.replace(worst, passed=not worst.detail)


def _worse(
    so_far: NumericCheck, artifact: ArtifactFile, got: Sequence[Any], expected: Sequence[Any]
) -> NumericCheck:
    worst = {output.name: output for output in so_far.outputs}
    allowed, detail = so_far.tolerance, so_far.detail
    if len(got) != len(expected):
        detail = f"{len(got)} outputs instead of {len(expected)}"
    for tensor, ours, theirs in zip(artifact.outputs, got, expected, strict=False):
        array = np.asarray(theirs)
        wrong = differs(np.asarray(ours), array)
        detail = detail or (f"output {tensor.name} is {wrong}" if wrong else "")
        if np.asarray(ours).shape == array.shape:
            found = errors(np.asarray(ours).astype("float64"), array.astype("float64"))
            worst[tensor.name] = _worst_of(tensor.name, worst.get(tensor.name), *found)
        allowed = max(allowed, tolerance(str(array.dtype)))
    outputs = tuple(worst.values())
    return NumericCheck(
        passed=not detail,
        max_absolute=max((output.max_absolute for output in outputs), default=0.0),
        max_relative=max((output.max_relative for output in outputs), default=0.0),
        tolerance=allowed,
        detail=detail,
        outputs=outputs,
    )


def _worst_of(
    name: str, before: OutputDifference | None, absolute: float, relative: float
) -> OutputDifference:
    if before is not None:
        absolute = max(absolute, before.max_absolute)
        relative = max(relative, before.max_relative)
    return OutputDifference(name=name, max_absolute=absolute, max_relative=relative)
