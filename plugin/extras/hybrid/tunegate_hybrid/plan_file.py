"""`plan.json`: the parts of an artifact, in the order in which they run."""

from __future__ import annotations

from pathlib import Path, PurePath
from typing import Any, Literal

import msgspec

from tunegate.artifacts import artifact_io
from tunegate.errors import ArtifactError

PLAN_FILE = "plan.json"


class PartTensor(msgspec.Struct, frozen=True):
    """A tensor between parts by its name in the graph. `dtype` is NumPy's, '' for what is no tensor
    of numbers; a shape that depends on data is None."""

    name: str
    dtype: str
    shape: tuple[int, ...] | None

    @property
    def is_static(self) -> bool:
        return bool(self.dtype) and self.shape is not None


class PlannedPart(msgspec.Struct, frozen=True, kw_only=True):
    """A shared library of kernels where `is_compiled`, else an ONNX file. `tasks` say which kernel
    is which layer."""

    is_compiled: bool
    file: str
    inputs: tuple[PartTensor, ...]
    outputs: tuple[PartTensor, ...]
    tasks: tuple[dict[str, Any], ...] = ()


class PartsPlan(msgspec.Struct, frozen=True, kw_only=True):
    """`outputs` are the model's, in its order."""

    schema: Literal[1] = 1
    parts: tuple[PlannedPart, ...]
    outputs: tuple[str, ...]

    @classmethod
    def read(cls, directory: Path) -> PartsPlan:
        """Raises ArtifactError, for files elsewhere, too."""
        plan = artifact_io.read(directory / PLAN_FILE, cls)
        for part in plan.parts:
            if PurePath(part.file).name != part.file or part.file == "..":
                message = f"{directory / PLAN_FILE}: {part.file!r} is no file beside it."
                raise ArtifactError(message)
        return plan

    def write(self, directory: Path) -> None:
        """Raises OutputError."""
        artifact_io.write(directory / PLAN_FILE, self)
