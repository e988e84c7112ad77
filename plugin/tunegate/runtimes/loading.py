"""An artifact as a function to be timed, or taken apart, whichever runtime it is for."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Protocol

from tunegate.edges.models.seeded_inputs import seeded_inputs
from tunegate.edges.output.artifact_file import ArtifactFile, ArtifactTensor
from tunegate.runtimes.onnxruntime.session import opened

Inference = Callable[[], object]
_NUMPY_NAMES = {"float": "float32", "double": "float64"}
"""The numpy names of the types that ONNX Runtime calls otherwise."""


class NodeArg(Protocol):
    """An input of a session of ONNX Runtime; a dimension that is open is a name or None."""

    @property
    def name(self) -> str: ...
    @property
    def type(self) -> str: ...
    @property
    def shape(self) -> Sequence[int | str | None]: ...


def load_artifact(directory: Path, seed: int) -> Inference:
    """One synchronous inference on the inputs of `seed`, which are bound beforehand."""
    artifact = ArtifactFile.read(directory)
    if artifact.runtime == "onnxruntime":
        return load_onnx(directory / artifact.file, artifact.threads, seed)
    # TVM takes a second to import, and teams that only use ONNX Runtime do not have it.
    from tunegate.edges.metaschedule.loader import bound_inference  # noqa: PLC0415

    return bound_inference(directory, seeded_inputs(artifact.inputs, seed))


def operators_ms(directory: Path, inferences: int, seed: int) -> dict[str, float]:
    """What each operator takes in one inference of the whole model: medians."""
    artifact = ArtifactFile.read(directory)
    if artifact.runtime == "onnxruntime":
        # Reads the graph with the `onnx` package, which would double the
        # time a launch takes to start.
        from tunegate.runtimes.onnxruntime.operator_profile import profiled_ms  # noqa: PLC0415

        feed = seeded_inputs(artifact.inputs, seed)
        return profiled_ms(directory / artifact.file, feed, artifact.threads, inferences)
    from tunegate.edges.metaschedule.kernel_profile import kernels_ms  # noqa: PLC0415 -- as above

    return kernels_ms(directory, inferences, seed)


def load_onnx(model: Path, threads: int, seed: int) -> Inference:
    """ONNX Runtime with all its optimizations, one inference at a time."""
    session = opened(model, threads)
    feed = seeded_inputs([_input(each) for each in session.get_inputs()], seed)
    return lambda: session.run(None, feed)


def _input(node: NodeArg) -> ArtifactTensor:
    kind = node.type.removeprefix("tensor(").removesuffix(")")
    shape = tuple(dim if isinstance(dim, int) else 0 for dim in node.shape)
    return ArtifactTensor(node.name, shape, _NUMPY_NAMES.get(kind, kind))
