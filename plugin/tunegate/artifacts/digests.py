"""The digest of an artifact's content, whatever its layout in a file."""

from __future__ import annotations

import hashlib
from contextlib import suppress

import msgspec


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
