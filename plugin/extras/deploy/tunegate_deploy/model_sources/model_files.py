"""Writes the files of a downloaded model: the ONNX file and its data files, or an artifact of
ours."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path, PurePosixPath

from tunegate.errors import ModelError
from tunegate.system.onnx_scan import MAX_MODEL_BYTES, data_files, too_large
from tunegate.system.output.artifact_file import ARTIFACT_FILE, ArtifactFile, files_in
from tunegate_deploy.model_sources.download_limits import ByteCount

MAX_FILES = 10_000
_PIECE_BYTES = 2**20
Read = Callable[[str], Iterable[bytes]]
"""Returns the content of a file in pieces, by its path relative to the model's directory."""


def bring_model(name: str, into: Path, read: Read, count: ByteCount) -> Path:
    """Writes the ONNX file `name` and its data files below `into`. Raises ModelError if it is no
    ONNX file, or data files are outside its directory."""
    model = into / name
    write_file(model, read(name), count)
    bring_files(data_of(model), into, read, count)
    return model


def bring_artifact(into: Path, read: Read, count: ByteCount) -> Path:
    """Writes an artifact of ours. Raises ArtifactError if it is none, and ModelError if files are
    outside its directory."""
    write_file(into / ARTIFACT_FILE, read(ARTIFACT_FILE), count)
    artifact = ArtifactFile.read(into)
    bring_files([*dict.fromkeys([artifact.file, *artifact.files])], into, read, count)
    return into


def bring_files(names: Iterable[str], into: Path, read: Read, count: ByteCount) -> None:
    """Writes files that a model names. Raises ModelError if one is elsewhere, or they are too
    many."""
    for number, name in enumerate(dict.fromkeys(str(PurePosixPath(name)) for name in names)):
        require_inside(name)
        if number >= MAX_FILES:
            message = f"it names more than {MAX_FILES:,} files"
            raise ModelError(message)
        write_file(into / name, read(name), count)


def data_of(model: Path) -> tuple[str, ...]:
    """Returns the data files that the ONNX file names. Raises ModelError, also if it is no ONNX
    file."""
    size = model.stat().st_size
    if size > MAX_MODEL_BYTES:
        raise ModelError(too_large(size))
    return data_files(model.read_bytes())


def require_inside(name: str) -> None:
    """Raises ModelError for an invalid path, or one that leads out of the directory."""
    path = PurePosixPath(name)
    is_plain = bool(path.name) and not path.is_absolute() and ".." not in path.parts
    if not is_plain or "\\" in name or not name.isprintable() or len(name) > 1024:  # noqa: PLR2004
        message = f"the file {name[:200]!r} lies outside the model's directory"
        raise ModelError(message)


def write_file(path: Path, pieces: Iterable[bytes], count: ByteCount) -> None:
    """Writes a new file. Raises ModelError if something is there already."""
    path.parent.mkdir(parents=True, exist_ok=True)
    try:
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600)
    except FileExistsError as error:
        message = f"it has the file {path.name!r} twice"
        raise ModelError(message) from error
    with os.fdopen(descriptor, "wb") as file:
        for piece in pieces:
            count.add(len(piece))
            file.write(piece)


def pieces_of(file: Path) -> Iterator[bytes]:
    """Yields the content of a file of this machine."""
    with file.open("rb") as stream:
        while piece := stream.read(_PIECE_BYTES):
            yield piece


def content_digest(downloaded: Path) -> str:
    """Returns the SHA-256 of a model of one file. Several files have that of `sha256sum`'s output
    for them, sorted by name."""
    directory = downloaded if downloaded.is_dir() else downloaded.parent
    digests = dict(_all_digests(directory))
    if len(digests) == 1:
        return next(iter(digests.values()))
    return hashlib.sha256(_listing(digests).encode()).hexdigest()


def _all_digests(directory: Path) -> Iterator[tuple[str, str]]:
    yield from files_in(directory).items()
    own = directory / ARTIFACT_FILE
    if own.is_file():
        yield ARTIFACT_FILE, hashlib.sha256(own.read_bytes()).hexdigest()


def _listing(digests: Mapping[str, str]) -> str:
    return "".join(f"{digest}  {name}\n" for name, digest in sorted(digests.items()))
