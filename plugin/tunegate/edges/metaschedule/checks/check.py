"""A compiled model beside ONNX Runtime: every output is compared. Runs in a child."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from tunegate.artifacts.builds import OutputDifference
from tunegate.edges.metaschedule.checks.check_messages import CheckArtifact, Checked, CheckReply
from tunegate.edges.metaschedule.loader import device_exists, load
from tunegate.edges.models.seeded_inputs import seeded_inputs
from tunegate.edges.output.artifact_file import ArtifactFile
from tunegate.edges.reference.onnx_runtime import onnxruntime
from tunegate.edges.reference.tolerance import differs, errors, tolerance
from tunegate.engine.protocol import Failed


def check_numbers(request: CheckArtifact) -> CheckReply:
    """The inputs of each seed through both; the worst error decides."""
    if not device_exists(request.kind):
        return Checked(ran=False)
    artifact = ArtifactFile.read(Path(request.directory))
    run = load(Path(request.directory))
    session = onnxruntime.InferenceSession(request.reference, providers=["CPUExecutionProvider"])
    worst = Checked(ran=True)
    for seed in request.seeds:
        feed = seeded_inputs(artifact.inputs, seed)
        expected = session.run(None, feed)
        try:
            got = run(feed)
        except Exception as error:
            # the runtime's errors have no common base class
            return Failed(str(error).strip().splitlines()[-1][:300], model=True)
        worst = _worse(worst, artifact, got, expected)
    return worst


def _worse(so_far: Checked, artifact: ArtifactFile, got: Any, expected: Any) -> Checked:
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
    return Checked(
        ran=True,
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
