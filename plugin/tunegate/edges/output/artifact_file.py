"""`artifact.json`: what is in a deployable directory, and what made it."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Any, Literal

import msgspec

from tunegate import artifact_io
from tunegate.artifacts.input_rules import InputRule

ARTIFACT_FILE = "artifact.json"


class ArtifactTensor(msgspec.Struct, frozen=True):
    """An input or output; `dtype` is NumPy's name. An output that is no tensor has no shape, and
    says what it is, like `sequence(map)`. Only inputs have a `rule`."""

    name: str
    shape: tuple[int, ...]
    dtype: str
    rule: InputRule | None = None


class ArtifactFile(msgspec.Struct, frozen=True, kw_only=True):
    """`file` is beside it, and `files` are the SHA-256 digests of all that is; `threads` is what
    the code was tuned for. The rest is provenance."""

    schema: Literal[1] = 1
    runtime: str
    variant: str = ""
    settings: dict[str, str] = {}
    file: str
    entry: str = "main"
    inputs: tuple[ArtifactTensor, ...]
    outputs: tuple[ArtifactTensor, ...]
    threads: int
    device: Literal["cpu", "cuda"] = "cpu"
    files: dict[str, str] = {}
    model: str = ""
    key: str = ""
    target: dict[str, Any] = {}
    toolchain: dict[str, Any] = {}
    tasks: list[dict[str, Any]] = []

    @classmethod
    def read(cls, directory: Path) -> ArtifactFile:
        """Raises ArtifactError."""
        return artifact_io.read(directory / ARTIFACT_FILE, cls)

    def write(self, directory: Path) -> None:
        """The last file of a build: it says what the others are. Raises OutputError."""
        found = msgspec.structs.replace(self, files=files_in(directory))
        artifact_io.write(directory / ARTIFACT_FILE, found)


def files_in(directory: Path) -> dict[str, str]:
    """What lies beside `artifact.json`, with its digests."""
    return {
        str(file.relative_to(directory)): _sha256(file)
        for file in sorted(directory.rglob("*"))
        if file.is_file() and file.name != ARTIFACT_FILE
    }


def _sha256(file: Path) -> str:
    with file.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()
