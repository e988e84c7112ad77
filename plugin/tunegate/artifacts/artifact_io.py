"""Writes artifacts to JSON files and reads them. Unknown fields are tolerated, an unknown schema is
not.

Every file has the digest of its content, so an edited, cut or mixed file is refused. The digest is
no signature: whoever writes a file can compute it.
"""

import hashlib
from contextlib import suppress
from pathlib import Path
from typing import TypeVar

import msgspec

from tunegate.errors import ArtifactError, OutputError
from tunegate.regular_files import read_regular, replace
from tunegate_cache.format import validate

_Artifact = TypeVar("_Artifact", bound=msgspec.Struct)
NOT_JSON = validate.NOT_JSON
"""The errors of msgspec on bytes that are not JSON of the wanted type."""
_DIGEST = "digest"
_MOST_BYTES = 512 * 1024 * 1024
"""Fifty measured models are about 10 MB. A file of an earlier job may have been anybody's."""
_ANOTHER_OUT = "Choose another directory with --out."
_OF_A_STEP = "It is written by an earlier step; pass its directory with --out."


def seal(artifact: msgspec.Struct) -> bytes:
    """Returns the artifact as indented JSON, with its digest."""
    document = document_of(artifact)
    body = msgspec.json.encode({**document, _DIGEST: digest_of_document(document)})
    return msgspec.json.format(body, indent=2)


def write(path: Path, artifact: msgspec.Struct) -> None:
    """Writes an artifact atomically. Raises OutputError."""
    write_bytes(path, seal(artifact) + b"\n")


def write_text(path: Path, text: str) -> None:
    """Writes a rendering atomically. Raises OutputError."""
    write_bytes(path, text.encode())


def write_bytes(path: Path, body: bytes, advice: str = _ANOTHER_OUT) -> None:
    """Writes bytes atomically. Raises OutputError with what to do if the file cannot be written."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        replace(path, body)
    except OSError as error:
        message = f"{path}: cannot be written ({error.strerror}). {advice}"
        raise OutputError(message) from error


def read(path: Path, kind: type[_Artifact], advice: str = _OF_A_STEP) -> _Artifact:
    """Reads an artifact written by `write`. Raises ArtifactError, with the advice if there is
    none."""
    try:
        return decode(read_regular(path, _MOST_BYTES), kind)
    except FileNotFoundError as error:
        raise ArtifactError(f"{path}: not found. {advice}") from error
    except (OSError, *NOT_JSON) as error:
        why = error.strerror if isinstance(error, OSError) else error
        message = f"{path}: not a {kind.__name__} this version reads ({why}). Run the step again."
        raise ArtifactError(message) from error
    except AlteredError as error:
        message = f"{path}: not as tunegate wrote it. Run the step that writes it again."
        raise ArtifactError(message) from error


class AlteredError(ValueError):
    """The digest does not match the content."""


def decode(body: bytes, kind: type[_Artifact]) -> _Artifact:
    """Returns the artifact in a file's bytes. Raises msgspec.DecodeError or AlteredError, both
    ValueErrors."""
    artifact, document = msgspec.json.decode(body, type=kind), msgspec.json.decode(body)
    if document.pop(_DIGEST, "") != digest_of_document(document):
        raise AlteredError
    return artifact


# The digest of an artifact's content, whatever its layout in a file.


def digest_of(artifact: msgspec.Struct) -> str:
    """Returns a digest that is equal for an artifact and for its file read back."""
    return digest_of_document(document_of(artifact))


def document_of(artifact: msgspec.Struct) -> dict[str, object]:
    """Returns the artifact as JSON has it. One pass through a file may change it, such as an
    integer in a float's place."""
    body = msgspec.json.encode(artifact)
    with suppress(msgspec.DecodeError):  # an infinity becomes null, which no float is
        body = msgspec.json.encode(msgspec.json.decode(body, type=type(artifact)))
    document: dict[str, object] = msgspec.json.decode(body)
    return document


def digest_of_document(document: object) -> str:
    """Returns a digest that ignores the order of keys."""
    return hashlib.sha256(msgspec.json.encode(document, order="sorted")).hexdigest()
