"""`artifact.json`: what is in a deployable directory, and what made it."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Literal

import msgspec

from tunegate import artifact_io

NAME = "artifact.json"


class ArtifactTensor(msgspec.Struct, frozen=True):
    """An input or output; `dtype` is NumPy's name."""

    name: str
    shape: tuple[int, ...]
    dtype: str


class ArtifactFile(msgspec.Struct, frozen=True, kw_only=True):
    """`file` is beside it; `threads` is what the code was tuned for. The rest is provenance."""

    schema: Literal[1] = 1
    runtime: Literal["tvm", "onnxruntime"]
    file: str
    entry: str = "main"
    inputs: tuple[ArtifactTensor, ...]
    outputs: tuple[ArtifactTensor, ...]
    threads: int
    device: Literal["cpu", "cuda"] = "cpu"
    model: str = ""
    key: str = ""
    target: dict[str, Any] = {}
    toolchain: dict[str, Any] = {}
    tasks: list[dict[str, Any]] = []

    @classmethod
    def read(cls, directory: Path) -> ArtifactFile:
        """Raises ArtifactError."""
        return artifact_io.read(directory / NAME, cls)

    def write(self, directory: Path) -> None:
        """Raises OutputError."""
        artifact_io.write(directory / NAME, self)
