"""Artifacts to JSON files and back. Unknown fields are tolerated, an unknown schema is not."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path
from typing import TypeVar

import msgspec

from tunegate.errors import ArtifactError, OutputError

T = TypeVar("T", bound=msgspec.Struct)


def write(path: Path, artifact: msgspec.Struct) -> None:
    """Write an artifact as indented JSON, atomically."""
    body = msgspec.json.format(msgspec.json.encode(artifact), indent=2)
    partial = path.with_name(f".{path.name}.partial")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        partial.write_bytes(body + b"\n")
        partial.replace(path)
    except OSError as error:
        with suppress(OSError):  # what a full disk has left of it
            partial.unlink(missing_ok=True)
        message = (
            f"{path}: cannot be written ({error.strerror}). Choose another directory with --out."
        )
        raise OutputError(message) from error


def read(path: Path, kind: type[T]) -> T:
    """Read an artifact written by `write`."""
    try:
        return msgspec.json.decode(path.read_bytes(), type=kind)
    except FileNotFoundError as error:
        message = (
            f"{path}: not found. It is written by an earlier step; pass its directory with --out."
        )
        raise ArtifactError(message) from error
    except (OSError, msgspec.DecodeError) as error:
        message = f"{path}: not a {kind.__name__} this version reads ({error}). Run the step again."
        raise ArtifactError(message) from error
