from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from tests.support.programs import require
from tunegate_cache.format.signing import (
    BadKeyError,
    Signature,
    Signer,
    TrustedKeys,
    key_id_of,
    signer_from_pem,
)


def make_signer(seed: int = 1) -> Signer:
    return Signer(Ed25519PrivateKey.from_private_bytes(bytes([seed]) * 32))


OURS, THEIRS = make_signer(1), make_signer(2)
KEYS = TrustedKeys({"main": (OURS.public,), "team": (OURS.public,)})


def test_a_signature_holds_for_its_own_name_and_content_only() -> None:
    signature = OURS.sign("a", "d")
    assert KEYS.accepts("main", "a", "d", signature)
    assert not KEYS.accepts("main", "b", "d", signature)
    assert not KEYS.accepts("main", "a", "e", signature)


def test_an_unknown_key_a_cut_signature_and_none_are_refused() -> None:
    signature = OURS.sign("a", "d")
    forged = Signature(OURS.key, THEIRS.sign("a", "d").value)
    cut = Signature(OURS.key, signature.value[:-1])
    for bad in (THEIRS.sign("a", "d"), forged, cut, None):
        assert not KEYS.accepts("main", "a", "d", bad)


def test_a_zone_without_keys_needs_no_signature_and_a_part_of_a_zone_does() -> None:
    assert KEYS.accepts("pr/o/r/7", "a", "d", None)
    assert not KEYS.is_required("teams")
    assert KEYS.is_required("team/x")
    assert not KEYS.accepts("team/x", "a", "d", None)


def test_a_key_made_by_openssl_signs_what_its_public_half_accepts(tmp_path: Path) -> None:
    require("openssl")
    pem = tmp_path / "key.pem"
    line = ["openssl", "genpkey", "-algorithm", "ed25519", "-out", str(pem)]
    subprocess.run(line, capture_output=True, check=True)
    signer = signer_from_pem(pem.read_text())
    assert key_id_of(signer.public) == signer.key
    keys = TrustedKeys({"main": (signer.public,)})
    assert keys.accepts("main", "a", "d", signer.sign("a", "d"))


@pytest.mark.parametrize("text", ["", "hello", "-----BEGIN PRIVATE KEY-----\nAA==\n-----END-----"])
def test_what_is_no_key_is_named_without_being_shown(text: str) -> None:
    with pytest.raises(BadKeyError, match="openssl genpkey") as caught:
        signer_from_pem(text)
    assert not text or text not in str(caught.value)
    with pytest.raises(BadKeyError, match="no public key"):
        TrustedKeys({"main": (text,)})
