"""An evidence file: a statement in a DSSE envelope, signed with Ed25519.

The signature is over DSSE's pre-authentication encoding, so a payload of another type never counts
(https://github.com/secure-systems-lab/dsse/blob/master/protocol.md).
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Sequence
from typing import Annotated

import msgspec
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey

from tunegate.artifacts.artifact_io import NOT_JSON
from tunegate.errors import USAGE, TunegateError
from tunegate_cache.format.signing import BadKeyError, key_id, private_key, public_key
from tunegate_deploy.evidence.statement import PREDICATE_TYPE, STATEMENT_TYPE, Statement

PAYLOAD_TYPE = "application/vnd.in-toto+json"
_OF_ADDRESSES = str.maketrans("-_", "+/")
MAX_EVIDENCE_BYTES = 4 * 2**20
MAX_SIGNATURES = 16
"""Each is checked with every trusted key: thousands over a long payload would take minutes."""


class EvidenceError(TunegateError):
    """Evidence does not show what it should; the text says why in one line."""

    exit_code = USAGE


class Signature(msgspec.Struct, frozen=True):
    """`sig` is base64; `keyid` is a hint at the signing key."""

    sig: str
    keyid: Annotated[str, msgspec.Meta(max_length=128)] = ""


class Envelope(msgspec.Struct, frozen=True, kw_only=True):
    """The content of an evidence file."""

    payload_type: str = msgspec.field(name="payloadType")
    payload: str
    signatures: Annotated[tuple[Signature, ...], msgspec.Meta(max_length=MAX_SIGNATURES)]


class _Kind(msgspec.Struct):
    """The part of a statement that says which layout the rest has."""

    type: str = msgspec.field(name="_type")
    predicate_type: str = msgspec.field(name="predicateType")


def sign(statement: Statement, key: Ed25519PrivateKey) -> bytes:
    """Returns the evidence file: the statement, signed by the key."""
    payload = msgspec.json.encode(statement)
    signature = key.sign(encode_for_signing(PAYLOAD_TYPE, payload))
    envelope = Envelope(
        payload_type=PAYLOAD_TYPE,
        payload=_text(payload),
        signatures=(Signature(_text(signature), key_id(key.public_key().public_bytes_raw())),),
    )
    return msgspec.json.format(msgspec.json.encode(envelope), indent=2) + b"\n"


def encode_for_signing(payload_type: str, payload: bytes) -> bytes:
    """Returns the bytes that DSSE signs: PAE(type, payload)."""
    kind = payload_type.encode()
    return b"DSSEv1 %d %b %d %b" % (len(kind), kind, len(payload), payload)


def verify_signature(evidence: bytes, trusted: Sequence[Ed25519PublicKey]) -> Statement:
    """Returns the statement of an evidence file signed by a trusted key. Raises EvidenceError if it
    is truncated, altered, of another kind, or not signed by a trusted key."""
    envelope, payload = _open(evidence)
    message = encode_for_signing(envelope.payload_type, payload)
    if not any(_is_by(key, each.sig, message) for key in trusted for each in envelope.signatures):
        named = ", ".join(each.keyid for each in envelope.signatures if each.keyid) or "nobody"
        raise EvidenceError(
            f"no trusted key has signed this content (it names {named}): it was altered, or signed "
            "by somebody else. Trust the key in the policy, or make the evidence again."
        )
    return read_statement(envelope.payload_type, payload)


def require_moderate(size: int) -> None:
    """Raises EvidenceError for a size in bytes that no evidence has."""
    if size > MAX_EVIDENCE_BYTES:
        raise EvidenceError(f"larger than {MAX_EVIDENCE_BYTES >> 20} MiB: no evidence of ours.")


def _open(evidence: bytes) -> tuple[Envelope, bytes]:
    require_moderate(len(evidence))
    try:
        envelope = msgspec.json.decode(evidence, type=Envelope)
    except NOT_JSON as error:
        raise EvidenceError(f"no DSSE envelope ({error}). Name an evidence.json.") from error
    return envelope, _bytes(envelope.payload)


def read_statement(payload_type: str, payload: bytes) -> Statement:
    """Returns the statement of a verified payload. Raises EvidenceError for any other: the type is
    signed, too, so it is read after the signature."""
    if payload_type != PAYLOAD_TYPE:
        raise EvidenceError(f'a signed "{payload_type}", and not an in-toto statement.')
    try:
        kind = msgspec.json.decode(payload, type=_Kind)
        if (kind.type, kind.predicate_type) != (STATEMENT_TYPE, PREDICATE_TYPE):
            strange = kind.predicate_type if kind.type == STATEMENT_TYPE else kind.type
            raise EvidenceError(f"a signed {strange}, and not a latency verdict of ours.")
        return msgspec.json.decode(payload, type=Statement)
    except NOT_JSON as error:
        raise EvidenceError(f"a signed statement of another layout ({error}).") from error


def _is_by(key: Ed25519PublicKey, signature: str, message: bytes) -> bool:
    try:
        key.verify(_bytes(signature), message)
    except (EvidenceError, InvalidSignature):  # others may sign in their own way beside ours
        return False
    return True


def _text(content: bytes) -> str:
    return base64.b64encode(content).decode()


def _bytes(text: str) -> bytes:
    """Returns what base64 stands for, in either alphabet, as DSSE allows."""
    try:
        return base64.b64decode(text.translate(_OF_ADDRESSES), validate=True)
    except (binascii.Error, ValueError) as error:
        raise EvidenceError(f"its payload is no base64 ({error}). Fetch it again.") from error


def read_private_key(pem: str, where: str) -> Ed25519PrivateKey:
    """Returns the key of a PEM text. Raises EvidenceError, which never shows the text."""
    try:
        return private_key(pem)
    except BadKeyError as error:
        raise EvidenceError(f"{where}: no Ed25519 key: {error}.") from None


def read_public_key(text: str) -> Ed25519PublicKey:
    """Returns the key of a text such as `ed25519:` and 44 characters of base64. Raises
    EvidenceError."""
    try:
        return public_key(text)
    except BadKeyError as error:
        raise EvidenceError(f"{error}.") from error
