from __future__ import annotations

import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from tunegate.errors import ConfigError
from tunegate.system.cache.shared_cache import VARIABLE, signing_key


@pytest.mark.parametrize("text", [None, "", " \n"])
def test_without_a_key_nothing_is_signed(monkeypatch: pytest.MonkeyPatch, text: str | None) -> None:
    monkeypatch.delenv(VARIABLE, raising=False)
    if text is not None:
        monkeypatch.setenv(VARIABLE, text)
    assert signing_key() is None


def test_the_key_of_the_environment_signs(monkeypatch: pytest.MonkeyPatch) -> None:
    key = Ed25519PrivateKey.from_private_bytes(b"\x01" * 32)
    pem = key.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.NoEncryption(),
    )
    monkeypatch.setenv(VARIABLE, pem.decode())
    signer = signing_key()
    assert signer is not None
    assert signer.sign("a", "d") == signer.sign("a", "d")


def test_what_is_no_key_is_refused_and_never_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(VARIABLE, "hunter2")
    with pytest.raises(ConfigError, match=VARIABLE) as raised:
        signing_key()
    assert "hunter2" not in str(raised.value)
