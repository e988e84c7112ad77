"""An artifact as a function to be timed, or taken apart, whichever runtime it is for."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import onnx
import onnxruntime

from tunegate.edges.artifact_file import ArtifactFile, ArtifactTensor
from tunegate.edges.bench.onnxruntime_profile import profiled_ms, session_options
from tunegate.edges.seeded_inputs import seeded_inputs

Inference = Callable[[], object]
_SEED = 1


def load_artifact(directory: Path) -> Inference:
    """One synchronous inference on fixed seeded inputs, which are bound beforehand."""
    artifact = ArtifactFile.read(directory)
    if artifact.runtime == "onnxruntime":
        return load_onnx(directory / artifact.file, artifact.threads)
    # TVM takes a second to import, and teams that only use ONNX Runtime do not have it.
    from tunegate.edges.metaschedule.loader import bound_inference  # noqa: PLC0415

    return bound_inference(directory, seeded_inputs(artifact.inputs, _SEED))


def operators_ms(directory: Path, inferences: int) -> dict[str, float]:
    """What each operator takes in one inference of the whole model: medians."""
    artifact = ArtifactFile.read(directory)
    if artifact.runtime == "onnxruntime":
        feed = seeded_inputs(artifact.inputs, _SEED)
        return profiled_ms(directory / artifact.file, feed, artifact.threads, inferences)
    from tunegate.edges.metaschedule.in_model import kernels_ms  # noqa: PLC0415 -- as above

    return kernels_ms(directory, inferences)


def load_onnx(model: Path, threads: int) -> Inference:
    """ONNX Runtime with all its optimizations, one inference at a time."""
    options = session_options(threads)
    session = onnxruntime.InferenceSession(str(model), options, providers=["CPUExecutionProvider"])
    feed = seeded_inputs(_inputs(model), _SEED)
    return lambda: session.run(None, feed)


def _inputs(model: Path) -> list[ArtifactTensor]:
    graph = onnx.load(model, load_external_data=False).graph
    initialized = {tensor.name for tensor in graph.initializer}
    tensors = []
    for value in graph.input:
        if value.name not in initialized:
            kind = value.type.tensor_type
            dtype = onnx.helper.tensor_dtype_to_np_dtype(kind.elem_type)
            shape = tuple(int(dim.dim_value) for dim in kind.shape.dim)
            tensors.append(ArtifactTensor(value.name, shape, str(dtype)))
    return tensors
