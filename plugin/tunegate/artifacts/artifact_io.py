"""Artifacts to JSON files and back. Unknown fields are tolerated, an unknown schema is not.

Every file says the digest of its content: one that was edited, cut short or mixed is no artifact.
It is no signature, since whoever writes a file can compute it.
"""

from __future__ import annotations

import hashlib
from contextlib import suppress
from pathlib import Path
from typing import TypeVar

import msgspec

from tunegate.errors import ArtifactError, OutputError
from tunegate.regular_files import read_regular, replace

_Artifact = TypeVar("_Artifact", bound=msgspec.Struct)
_DIGEST = "digest"
_ANOTHER_OUT = "Choose another directory with --out."


def sealed(artifact: msgspec.Struct) -> bytes:
    """The artifact as indented JSON, with its digest."""
    document = document_of(artifact)
    body = msgspec.json.encode({**document, _DIGEST: digest_of_document(document)})
    return msgspec.json.format(body, indent=2)


def write(path: Path, artifact: msgspec.Struct) -> None:
    """Write an artifact, atomically. Raises OutputError."""
    write_bytes(path, sealed(artifact) + b"\n")


def write_text(path: Path, text: str) -> None:
    """Write a rendering, atomically. Raises OutputError."""
    write_bytes(path, text.encode())


def write_bytes(path: Path, body: bytes, advice: str = _ANOTHER_OUT) -> None:
    """Raises OutputError, with what to do where the file cannot be written."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        replace(path, body)
    except OSError as error:
        message = f"{path}: cannot be written ({error.strerror}). {advice}"
        raise OutputError(message) from error


def read(path: Path, kind: type[_Artifact]) -> _Artifact:
    """Read an artifact written by `write`. Raises ArtifactError."""
    try:
        return decoded(read_regular(path), kind)
    except FileNotFoundError as error:
        message = (
            f"{path}: not found. It is written by an earlier step; pass its directory with --out."
        )
        raise ArtifactError(message) from error
    except (OSError, msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        message = f"{path}: not a {kind.__name__} this version reads ({error}). Run the step again."
        raise ArtifactError(message) from error
    except AlteredError as error:
        message = f"{path}: not as tunegate wrote it. Run the step that writes it again."
        raise ArtifactError(message) from error


class AlteredError(ValueError):
    """The digest is not that of the content."""


def decoded(body: bytes, kind: type[_Artifact]) -> _Artifact:
    """The artifact of a file's bytes. Raises msgspec.DecodeError or AlteredError, which are
    ValueErrors."""
    artifact, document = msgspec.json.decode(body, type=kind), msgspec.json.decode(body)
    if document.pop(_DIGEST, "") != digest_of_document(document):
        raise AlteredError
    return artifact


# The digest of an artifact's content, whatever its layout in a file.


def digest_of(artifact: msgspec.Struct) -> str:
    """Equal for an artifact and for what is read of the file that it was written to."""
    return digest_of_document(document_of(artifact))


def document_of(artifact: msgspec.Struct) -> dict[str, object]:
    """The artifact as JSON has it. What goes through a file once may change: an
    integer where a float belongs."""
    body = msgspec.json.encode(artifact)
    with suppress(msgspec.DecodeError):  # an infinity becomes null, which no float is
        body = msgspec.json.encode(msgspec.json.decode(body, type=type(artifact)))
    document: dict[str, object] = msgspec.json.decode(body)
    return document


def digest_of_document(document: object) -> str:
    """The order of keys does not count."""
    return hashlib.sha256(msgspec.json.encode(document, order="sorted")).hexdigest()
