from __future__ import annotations

from pathlib import Path

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat

from tunegate.config import CacheConfig
from tunegate.errors import ConfigError
from tunegate_cache.format.signing import Signer
from tunegate_tuners.configured import configured_bucket, open_bucket


def _config(folder: Path, *, keys: dict[str, tuple[str, ...]] | None = None) -> CacheConfig:
    return CacheConfig(url=str(folder), read_zones=("main",), trusted_keys=keys or {})


def test_a_tuner_that_runs_what_it_finds_needs_keys_for_every_zone(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"trusted-keys: triton runs what it finds .* zone main"):
        open_bucket("triton", _config(tmp_path), root=tmp_path, holds_code=True)
    open_bucket("helion", _config(tmp_path), root=tmp_path, holds_code=False)


def test_code_is_stored_only_signed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    key = Ed25519PrivateKey.generate()
    config = _config(tmp_path, keys={"main": (Signer(key).public,)})
    monkeypatch.delenv("TUNEGATE_SIGNING_KEY", raising=False)
    bucket = open_bucket("triton", config, root=tmp_path, holds_code=True)
    bucket.put("k", "f", b"code")
    assert bucket.get("k", ["f"]) == {}
    assert not list(tmp_path.iterdir())
    pem = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()).decode()
    monkeypatch.setenv("TUNEGATE_SIGNING_KEY", pem)
    open_bucket("triton", config, root=tmp_path, holds_code=True).put("k", "f", b"code")
    assert bucket.get("k", ["f"]) == {"f": b"code"}


def test_modes_are_those_of_every_run(tmp_path: Path) -> None:
    for mode, kept in (("off", {}), ("ro", {}), ("rw", {"f": b"x"})):
        config = CacheConfig(url=str(tmp_path / mode), mode=mode)  # type: ignore[arg-type]
        bucket = open_bucket("helion", config, root=tmp_path, holds_code=False)
        bucket.put("k", "f", b"x")
        assert bucket.get("k", ["f"]) == kept


@pytest.mark.parametrize("named", ["", "tunegate.yaml"])
def test_a_file_is_named_by_an_absolute_path(named: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TUNEGATE_TUNERS", named)
    with pytest.raises(ConfigError, match=r"TUNEGATE_TUNERS: .* is no absolute path"):
        configured_bucket("flashinfer")
