"""The ONNX files that git tracks here, and which of their inputs have open dimensions."""

from __future__ import annotations

import os
from pathlib import Path

import msgspec
import onnx
from google.protobuf.message import DecodeError

from tunegate.edges.git.process import GitProcess
from tunegate.edges.models.scan import MAX_MODEL_BYTES, data_files
from tunegate.errors import ModelError
from tunegate.regular_files import opened_inside

_LFS_POINTER = b"version https://git-lfs.github.com/spec/"


class OpenInput(msgspec.Struct, frozen=True):
    """An input with at least one open dimension; those are given by their name, or `?`."""

    name: str
    dimensions: tuple[int | str, ...]


class FoundModel(msgspec.Struct, frozen=True):
    """`note` says why the inputs are not known, where they are not."""

    path: str
    open_inputs: tuple[OpenInput, ...] = ()
    note: str = ""


def find_models(repository: Path) -> tuple[FoundModel, ...]:
    """Every `.onnx` file in the index of the repository, by path. Raises RevisionError."""
    git = GitProcess(repository)
    listed = (git.text("ls-files", "-z") or "").split("\0")
    return tuple(_found(git.root, path) for path in sorted(listed) if path.endswith(".onnx"))


def _found(root: Path, path: str) -> FoundModel:
    file = opened_inside(root, path)
    if file is None:
        is_there = os.path.lexists(root / path)
        return FoundModel(path, note=f"not {'a file ' if is_there else ''}in the working tree")
    with file:
        if os.fstat(file.fileno()).st_size > MAX_MODEL_BYTES:
            return FoundModel(path, note="too large to look into here")
        body = file.read()
    if body.startswith(_LFS_POINTER):
        return FoundModel(path, note="a Git LFS pointer; git lfs pull shows its inputs")
    try:
        data_files(body)
        graph = onnx.load_model_from_string(body).graph
    except (DecodeError, ModelError):
        return FoundModel(path, note="not a readable ONNX file")
    return FoundModel(path, _open_inputs(graph))


def _open_inputs(graph: onnx.GraphProto) -> tuple[OpenInput, ...]:
    weights = {tensor.name for tensor in graph.initializer}
    inputs = [
        OpenInput(value.name, tuple(_dimension(d) for d in value.type.tensor_type.shape.dim))
        for value in graph.input
        if value.name not in weights
    ]
    return tuple(i for i in inputs if any(isinstance(d, str) for d in i.dimensions))


def _dimension(dimension: onnx.TensorShapeProto.Dimension) -> int | str:
    if dimension.HasField("dim_value") and dimension.dim_value > 0:
        return int(dimension.dim_value)
    return str(dimension.dim_param) or "?"
