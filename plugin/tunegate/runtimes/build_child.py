"""The child that writes an artifact for ONNX Runtime: the model with its shapes fixed, in one file.

ONNX Runtime parses what a pull request brings; what breaks it breaks this process only.
"""

from __future__ import annotations

import hashlib
import time
from pathlib import Path

import msgspec
import numpy as np
import onnx

from tunegate.edges.models.preparation import PreparedModel, file_digests, prepare, save
from tunegate.edges.models.seeded_inputs import seeded_inputs
from tunegate.edges.output.artifact_file import ArtifactFile, ArtifactTensor
from tunegate.edges.processes.out_of_memory import memory_problem
from tunegate.edges.reference.onnx_runtime import onnxruntime
from tunegate.errors import ModelError
from tunegate.runtimes.build_messages import Refused, WriteArtifact, WriteReply, Written

Request = WriteArtifact

MODEL = "model.onnx"
_DATA = "model.data"


def handle_request(request: WriteArtifact) -> WriteReply:
    """Serve one request; a model that ONNX Runtime cannot run is a reply, not a crash."""
    try:
        return _write(request)
    except ModelError as error:
        return Refused(str(error))


def _write(request: WriteArtifact) -> Written:
    started = time.monotonic()
    prepared = prepare(
        Path(request.file),
        shapes=request.shapes,
        into=Path(request.scratch),
        path=request.path,
    )
    directory = Path(request.directory)
    directory.mkdir(parents=True, exist_ok=True)
    save(onnx.load(prepared.fixed), directory / MODEL)
    inputs = tuple(ArtifactTensor(t.name, t.shape, t.dtype) for t in prepared.inputs)
    outputs = _outputs(directory / MODEL, prepared, inputs, request)
    key = _key(directory, request.threads)
    ArtifactFile(
        runtime="onnxruntime",
        file=MODEL,
        inputs=inputs,
        outputs=outputs,
        threads=request.threads,
        model=request.path,
        key=key,
        toolchain={"onnxruntime": onnxruntime.__version__},
    ).write(directory)
    size = sum(file.stat().st_size for file in _files(directory))
    return Written(key=key, size_bytes=size, seconds=time.monotonic() - started)


def _outputs(
    model: Path,
    prepared: PreparedModel,
    inputs: tuple[ArtifactTensor, ...],
    request: WriteArtifact,
) -> tuple[ArtifactTensor, ...]:
    """One inference shows that it runs, and what comes out: a graph need not say its shapes."""
    path = request.path
    try:
        session = onnxruntime.InferenceSession(str(model), providers=["CPUExecutionProvider"])
        found = session.run(list(prepared.outputs), seeded_inputs(inputs, request.seed))
    except Exception as error:
        # onnxruntime's exceptions have no common base class
        problem = memory_problem(error)
        if problem:
            raise ModelError(f"{path}: {problem}.") from error
        reason = str(error).strip().splitlines() or [type(error).__name__]
        message = f"{path}: ONNX Runtime cannot run the model ({reason[0][:200]}). Fix the export."
        raise ModelError(message) from error
    for name, value in zip(prepared.outputs, found, strict=True):
        if not isinstance(value, np.ndarray):
            message = f"{path}: output {name} is not a tensor. Export the model without it."
            raise ModelError(message)
    return tuple(
        ArtifactTensor(name, tuple(value.shape), str(value.dtype))
        for name, value in zip(prepared.outputs, found, strict=True)
    )


def _key(directory: Path, threads: int) -> str:
    """Equal keys mean the same model run by the same runtime: such a pair needs no measuring."""
    files = file_digests(directory / MODEL)
    parts = {"files": files, "onnxruntime": onnxruntime.__version__, "threads": threads}
    return hashlib.sha256(msgspec.json.encode(parts, order="sorted")).hexdigest()


def _files(directory: Path) -> list[Path]:
    return [file for file in (directory / MODEL, directory / _DATA) if file.exists()]
