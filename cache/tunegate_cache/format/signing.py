"""Ed25519 signatures that bind content to its place in the store.

A signature covers the object's name (hence zone and target) and the digest of its content: it is
worthless on another object. Readers hold only public keys, so none of them can forge.
"""

import base64
import binascii
import hashlib
from collections.abc import Mapping

import msgspec
from cryptography.exceptions import InvalidSignature, UnsupportedAlgorithm
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey
from cryptography.hazmat.primitives.serialization import load_pem_private_key

KEY_ID_BYTES, SIGNATURE_BYTES = 8, 64
_PREFIX = "ed25519:"


class BadKeyError(ValueError):
    """A text that is no key. The error never contains the text."""


class Signature(msgspec.Struct, frozen=True):
    """`key` is the 16-digit id of the key: the beginning of the digest of its public half."""

    key: str
    value: bytes


class Signer:
    """A private key, which never shows itself."""

    def __init__(self, key: Ed25519PrivateKey) -> None:
        self._key = key
        self.key = key_id(key.public_key().public_bytes_raw())

    def sign(self, name: str, digest: str) -> Signature:
        return Signature(self.key, self._key.sign(_message(name, digest)))

    @property
    def public(self) -> str:
        """Returns the public key, for others to add to their trusted keys."""
        return public_text(self._key.public_key())


class TrustedKeys:
    """The keys that may sign the objects of a zone. A zone without keys needs no signature; a key
    for `team` also covers `team/x`."""

    def __init__(self, keys: Mapping[str, tuple[str, ...]] | None = None) -> None:
        """Raises BadKeyError."""
        self._keys = {
            zone: {key_id(raw): raw for raw in map(_public, texts)}
            for zone, texts in (keys or {}).items()
        }

    def is_required(self, zone: str) -> bool:
        return self._keys_of_zone(zone) is not None

    def is_signer(self, zone: str, signer: Signer | None) -> bool:
        """Returns whether readers trust what this signer writes to the zone, or None unsigned."""
        return self.has(zone, "" if signer is None else signer.key)

    def has(self, zone: str, key: str) -> bool:
        """Returns whether the key of this id may sign for the zone; '' is unsigned."""
        keys = self._keys_of_zone(zone)
        return keys is None or key in keys

    def of(self, zone: str) -> tuple[str, ...]:
        """Returns the public keys of the zone, sorted; none where it needs no signature."""
        raws = (self._keys_of_zone(zone) or {}).values()
        return tuple(sorted(f"{_PREFIX}{base64.b64encode(raw).decode()}" for raw in raws))

    def accepts(self, zone: str, name: str, digest: str, signature: Signature | None) -> bool:
        """Returns whether an object of the zone is trusted."""
        keys = self._keys_of_zone(zone)
        if keys is None:
            return True
        if signature is None or signature.key not in keys:
            return False
        try:
            public = Ed25519PublicKey.from_public_bytes(keys[signature.key])
            public.verify(signature.value, _message(name, digest))
        except InvalidSignature:
            return False
        return True

    def _keys_of_zone(self, zone: str) -> Mapping[str, bytes] | None:
        while zone:
            if zone in self._keys:
                return self._keys[zone]
            zone = zone.rpartition("/")[0]
        return None


def signer_from_pem(pem: str) -> Signer:
    """Returns a signer with the key that `openssl genpkey -algorithm ed25519` wrote. Raises
    BadKeyError."""
    return Signer(private_key(pem))


def private_key(pem: str) -> Ed25519PrivateKey:
    """Returns the key of a PEM text. Raises BadKeyError, which never contains the text."""
    try:
        key = load_pem_private_key(pem.strip().encode() + b"\n", password=None)
    except (ValueError, TypeError, UnsupportedAlgorithm):
        key = None
    if not isinstance(key, Ed25519PrivateKey):
        message = "no PEM private key of Ed25519; make one with openssl genpkey -algorithm ed25519"
        raise BadKeyError(f"the signing key is {message}")
    return key


def key_id(public: bytes) -> str:
    return hashlib.sha256(public).hexdigest()[: 2 * KEY_ID_BYTES]


def public_text(key: Ed25519PublicKey) -> str:
    """Returns the public key as a configuration writes it."""
    return f"{_PREFIX}{base64.b64encode(key.public_bytes_raw()).decode()}"


def public_key(text: str) -> Ed25519PublicKey:
    """Returns the public key that a configuration names. Raises BadKeyError."""
    return Ed25519PublicKey.from_public_bytes(_public(text))


def _public(text: str) -> bytes:
    try:
        raw = base64.b64decode(text.removeprefix(_PREFIX), validate=True)
    except binascii.Error:
        raw = b""
    if not text.startswith(_PREFIX) or len(raw) != 32:  # noqa: PLR2004 -- RFC 8032
        message = f'"{text}" is not a public key; it must be ed25519: and 44 characters of base64'
        raise BadKeyError(message)
    return raw


def _message(name: str, digest: str) -> bytes:
    return f"tunegate ms1\n{name}\n{digest}".encode()
