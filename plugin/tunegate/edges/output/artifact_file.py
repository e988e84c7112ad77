"""`artifact.json`: what is in a deployable directory, and what made it."""

from __future__ import annotations

import hashlib
import shutil
from pathlib import Path
from typing import Any, Literal

import msgspec

from tunegate import artifact_io
from tunegate.artifacts.input_rules import DrawnInput, Files, InputForm, InputRule

ARTIFACT_FILE = "artifact.json"
_INPUTS = "inputs"
"""The directory of an artifact with the arrays that the user gave."""


class ArtifactTensor(msgspec.Struct, frozen=True):
    """An input or output; `dtype` is NumPy's name. An output that is no tensor has no shape, and
    says what it is, like `sequence(map)`. Only inputs have a `rule`, and a `form`: shape and
    type are then those of each of its tensors."""

    name: str
    shape: tuple[int, ...]
    dtype: str
    rule: InputRule | None = None
    form: InputForm = ""

    def drawn(self) -> DrawnInput:
        """Returns the input as the report shows it."""
        return DrawnInput(self.name, self.shape, self.dtype, self.rule, self.form)


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
        found = artifact_io.read(directory / ARTIFACT_FILE, cls)
        inputs = tuple(_located(tensor, directory) for tensor in found.inputs)
        return msgspec.structs.replace(found, inputs=inputs)

    def write(self, directory: Path) -> None:
        """Writes the last file of a build: it lists the others, and takes in the files of given
        inputs. Raises OutputError."""
        inputs = tuple(_taken_in(tensor, at, directory) for at, tensor in enumerate(self.inputs))
        found = msgspec.structs.replace(self, inputs=inputs, files=files_in(directory))
        artifact_io.write(directory / ARTIFACT_FILE, found)


def _located(tensor: ArtifactTensor, directory: Path) -> ArtifactTensor:
    """The input, with the paths of its files; in `artifact.json` they have none."""
    if tensor.rule is None or not isinstance(tensor.rule.values, Files):
        return tensor
    files = tuple(str((directory / file).absolute()) for file in tensor.rule.values.files)
    return _with_files(
        tensor, tensor.rule, msgspec.structs.replace(tensor.rule.values, files=files)
    )


def _taken_in(tensor: ArtifactTensor, at: int, directory: Path) -> ArtifactTensor:
    if tensor.rule is None or not isinstance(tensor.rule.values, Files):
        return tensor
    copies = []
    for case, file in enumerate(tensor.rule.values.files):
        copies.append(f"{_INPUTS}/{at}-{case}{Path(file).suffix}")
        copy = directory / copies[-1]
        if copy.absolute() != Path(file).absolute():
            copy.parent.mkdir(exist_ok=True)
            shutil.copyfile(file, copy)
    found = msgspec.structs.replace(tensor.rule.values, files=tuple(copies))
    return _with_files(tensor, tensor.rule, found)


def _with_files(tensor: ArtifactTensor, rule: InputRule, files: Files) -> ArtifactTensor:
    return msgspec.structs.replace(tensor, rule=msgspec.structs.replace(rule, values=files))


def files_in(directory: Path) -> dict[str, str]:
    """Returns the digests of the files beside `artifact.json`, by name."""
    return {
        str(file.relative_to(directory)): _sha256(file)
        for file in sorted(directory.rglob("*"))
        if file.is_file() and file.name != ARTIFACT_FILE
    }


def _sha256(file: Path) -> str:
    with file.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()
