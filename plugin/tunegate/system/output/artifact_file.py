"""`artifact.json`: the contents of a deployable directory, and what made it."""

from __future__ import annotations

import hashlib
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal

import msgspec

from tunegate.artifacts import artifact_io
from tunegate.artifacts.artifact_io import digest_of
from tunegate.artifacts.builds import Build, BuiltTask
from tunegate.artifacts.inputs import DrawnInput, Files, InputForm, InputRule
from tunegate.errors import ArtifactError, OutputError
from tunegate.ports import Shipping

ARTIFACT_FILE = "artifact.json"
_NAME_ONE = "An artifact is a directory that holds this file: name such a directory."
_INPUTS = "inputs"
"""The directory of an artifact for arrays that the user gave."""


class ArtifactTensor(msgspec.Struct, frozen=True):
    """An input or output; `dtype` is NumPy's name. An output that is no tensor has no shape, and
    names its form, like `sequence(map)`. Only inputs have a `rule` and a `form`: shape and type are
    then those of each of its tensors."""

    name: str
    shape: tuple[int, ...]
    dtype: str
    rule: InputRule | None = None
    form: InputForm = ""

    def as_reported(self) -> DrawnInput:
        """Returns the input as the report shows it."""
        return DrawnInput(self.name, self.shape, self.dtype, self.rule, self.form)


class ArtifactFile(msgspec.Struct, frozen=True, kw_only=True):
    """`file` is beside it, and `files` are the SHA-256 digests of everything there; `threads` is
    what the code was tuned for, `libraries` the SHA-256 digests of those with its custom operators.
    The rest is provenance."""

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
    libraries: tuple[str, ...] = ()

    @classmethod
    def read(cls, directory: Path) -> ArtifactFile:
        """Reads the file. Raises ArtifactError."""
        artifact = artifact_io.read(directory / ARTIFACT_FILE, cls, _NAME_ONE)
        inputs = tuple(_make_absolute(tensor, directory) for tensor in artifact.inputs)
        return msgspec.structs.replace(artifact, inputs=inputs)

    def write(self, directory: Path) -> None:
        """Writes the last file of a build: it lists the others, and copies the files of given
        inputs into the directory. Raises OutputError."""
        inputs = tuple(_copy_files(tensor, at, directory) for at, tensor in enumerate(self.inputs))
        artifact = msgspec.structs.replace(self, inputs=inputs, files=files_in(directory))
        artifact_io.write(directory / ARTIFACT_FILE, artifact)


def _make_absolute(tensor: ArtifactTensor, directory: Path) -> ArtifactTensor:
    """Returns the input with absolute paths of its files; `artifact.json` has relative ones."""
    if tensor.rule is None or not isinstance(tensor.rule.values, Files):
        return tensor
    for file in tensor.rule.values.files:
        if Path(file).is_absolute() or ".." in Path(file).parts:
            message = f"{directory / ARTIFACT_FILE}: its file {file!r} lies outside of it."
            raise ArtifactError(message)
    files = tuple(str((directory / file).absolute()) for file in tensor.rule.values.files)
    return _replace_files(
        tensor, tensor.rule, msgspec.structs.replace(tensor.rule.values, files=files)
    )


def _copy_files(tensor: ArtifactTensor, at: int, directory: Path) -> ArtifactTensor:
    if tensor.rule is None or not isinstance(tensor.rule.values, Files):
        return tensor
    copies = []
    for case, file in enumerate(tensor.rule.values.files):
        copies.append(f"{_INPUTS}/{at}-{case}{Path(file).suffix}")
        copy = directory / copies[-1]
        if copy.absolute() != Path(file).absolute():
            copy.parent.mkdir(exist_ok=True)
            shutil.copyfile(file, copy)
    values = msgspec.structs.replace(tensor.rule.values, files=tuple(copies))
    return _replace_files(tensor, tensor.rule, values)


def _replace_files(tensor: ArtifactTensor, rule: InputRule, files: Files) -> ArtifactTensor:
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


# An existing artifact as a build: from an earlier run, or from production.


def built_artifact(directory: Path) -> Build:
    """Returns the build. Raises ArtifactError if the directory holds none, or other files than were
    built."""
    artifact, files = _read_verified(directory)
    try:
        tasks = msgspec.convert(artifact.tasks, tuple[BuiltTask, ...])
    except msgspec.ValidationError:
        tasks = ()  # of another version; tasks only explain
    return Build(
        key=_content_key(artifact, files),
        digest=digest_of(artifact),
        directory=str(directory.resolve()),
        tasks=tasks,
        check=None,
        error=None,
        size_bytes=sum(each.stat().st_size for each in directory.iterdir() if each.is_file()),
        seconds=0.0,
        runtime=artifact.runtime,
        variant=artifact.variant,
    )


def check_unchanged(directory: Path, digest: str) -> None:
    """Raises ArtifactError unless the artifact has this digest."""
    artifact, _ = _read_verified(directory)
    if digest_of(artifact) != digest:
        message = f"{directory}: another build than the one that was made here. Run it again."
        raise ArtifactError(message)


def _read_verified(directory: Path) -> tuple[ArtifactFile, dict[str, str]]:
    """Returns the artifact and the digests of its files, after checking them."""
    artifact = ArtifactFile.read(directory)
    link = next((each for each in sorted(directory.rglob("*")) if each.is_symlink()), None)
    if link is not None:
        message = f"{link}: a symbolic link, which is not followed. Put the file itself there."
        raise ArtifactError(message)
    files = files_in(directory)
    for name in {artifact.file, *artifact.files}:
        entry, digest = artifact.files.get(name), files.get(name)
        if entry is None or entry != digest:
            what = "missing" if digest is None else "not the file"
            message = (
                f"{directory / name}: {what} that "
                f"{directory / ARTIFACT_FILE} names. Build it again."
            )
            raise ArtifactError(message)
    return artifact, files


def _content_key(artifact: ArtifactFile, files: dict[str, str]) -> str:
    """Returns a digest of the bytes of everything that decides what runs: the artifact's own
    description may be edited."""
    content = msgspec.structs.replace(
        artifact, files=files, model="", key="", target={}, toolchain={}, tasks=[]
    )
    return digest_of(content)


# An implementation of `ports.Shipping`: the directories of builds on disk.


class BuildDirectories:
    def keep(self, artifact: Path, others: Sequence[Path], at: Path) -> str:
        try:
            for other in others:
                shutil.rmtree(other, ignore_errors=True)
            if artifact != at:
                shutil.rmtree(at, ignore_errors=True)
                artifact.replace(at)
        except OSError as error:
            message = f"{at}: cannot be written ({error.strerror}). Choose another with --out."
            raise OutputError(message) from error
        return digest_of(ArtifactFile.read(at))

    def check(self, at: Path, digest: str) -> None:
        check_unchanged(at, digest)


_: type[Shipping] = BuildDirectories
