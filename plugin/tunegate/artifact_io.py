"""Artifacts to JSON files and back. Unknown fields are tolerated, an unknown schema is not."""

from __future__ import annotations

from pathlib import Path
from typing import TypeVar

import msgspec

from tunegate.errors import ArtifactError, OutputError
from tunegate.regular_files import read_regular, replace

T = TypeVar("T", bound=msgspec.Struct)


def write(path: Path, artifact: msgspec.Struct) -> None:
    """Write an artifact as indented JSON, atomically. Raises OutputError."""
    body = msgspec.json.format(msgspec.json.encode(artifact), indent=2)
    write_bytes(path, body + b"\n")


def write_text(path: Path, text: str) -> None:
    """Write a rendering, atomically. Raises OutputError."""
    write_bytes(path, text.encode())


def write_bytes(path: Path, body: bytes) -> None:
    """Raises OutputError."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        replace(path, body)
    except OSError as error:
        message = (
            f"{path}: cannot be written ({error.strerror}). Choose another directory with --out."
        )
        raise OutputError(message) from error


def read(path: Path, kind: type[T]) -> T:
    """Read an artifact written by `write`. Raises ArtifactError."""
    try:
        return msgspec.json.decode(read_regular(path), type=kind)
    except FileNotFoundError as error:
        message = (
            f"{path}: not found. It is written by an earlier step; pass its directory with --out."
        )
        raise ArtifactError(message) from error
    except (OSError, msgspec.DecodeError) as error:
        message = f"{path}: not a {kind.__name__} this version reads ({error}). Run the step again."
        raise ArtifactError(message) from error
