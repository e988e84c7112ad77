"""A compiled model beside ONNX Runtime: every output is compared. Runs in a child."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime

from tunegate.edges.artifact_file import ArtifactFile
from tunegate.edges.metaschedule.check_messages import CheckArtifact, Checked, CheckReply
from tunegate.edges.metaschedule.loader import device_exists, load
from tunegate.edges.metaschedule.messages import Failed
from tunegate.edges.metaschedule.tolerance import differs, errors, tolerance
from tunegate.edges.seeded_inputs import seeded_inputs

_SEEDS = (1, 2)


def check(request: CheckArtifact) -> CheckReply:
    """Two seeded inputs through both; the worst error decides."""
    if not device_exists(request.kind):
        return Checked(ran=False)
    artifact = ArtifactFile.read(Path(request.directory))
    run = load(Path(request.directory))
    session = onnxruntime.InferenceSession(request.reference, providers=["CPUExecutionProvider"])
    worst = Checked(ran=True)
    for seed in _SEEDS:
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
    absolute, relative, allowed = so_far.max_absolute, so_far.max_relative, so_far.tolerance
    detail = so_far.detail
    if len(got) != len(expected):
        detail = f"{len(got)} outputs instead of {len(expected)}"
    for tensor, ours, theirs in zip(artifact.outputs, got, expected, strict=False):
        array = np.asarray(theirs)
        wrong = differs(np.asarray(ours), array)
        detail = detail or (f"output {tensor.name} is {wrong}" if wrong else "")
        if np.asarray(ours).shape == array.shape:
            one, other = errors(np.asarray(ours).astype("float64"), array.astype("float64"))
            absolute, relative = max(absolute, one), max(relative, other)
        allowed = max(allowed, tolerance(str(array.dtype)))
    return Checked(
        ran=True, max_absolute=absolute, max_relative=relative, tolerance=allowed, detail=detail
    )
