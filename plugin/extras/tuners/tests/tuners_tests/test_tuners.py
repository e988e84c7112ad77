"""The doors of the tuners. Their packages are too large for the development environment: where one
is missing, its base class has the signatures that `examples/try_tuners.sh` checks with the real
one."""

from __future__ import annotations

import hashlib
import importlib
import json
import sys
import types
from pathlib import Path

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat

from tunegate_cache.format.signing import Signer
from tunegate_cache.stores.files import FileStore
from tunegate_tuners import configured
from tunegate_tuners.flashinfer import shared_autotune
from tunegate_tuners.lent_objects import lent_objects

CONFIG = json.dumps({"config": json.dumps({"num_warps": 4})})


@pytest.fixture(autouse=True)
def bucket(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> FileStore:
    """The store that the environment configures, with a key that may sign."""
    key = Ed25519PrivateKey.generate()
    pem = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()).decode()
    keys = f"{{main: ['{Signer(key).public}'], rel: ['{Signer(key).public}']}}"
    config = tmp_path / "tunegate.yaml"
    config.write_text(
        f"models: [{{path: '*.onnx'}}]\ncache: {{url: bucket, trusted-keys: {keys}}}\n"
    )
    monkeypatch.setenv("TUNEGATE_SIGNING_KEY", pem)
    monkeypatch.setenv("TUNEGATE_TUNERS", str(config))
    return FileStore(tmp_path / "bucket")


def _door(monkeypatch: pytest.MonkeyPatch, tuner: str, module: str) -> types.ModuleType:
    """The module of a tuner's door, over its package or the signature of it."""
    try:
        importlib.import_module(module)
    except ImportError:
        parts = module.split(".")
        for end in range(1, len(parts) + 1):
            name = ".".join(parts[:end])
            monkeypatch.setitem(sys.modules, name, types.ModuleType(name))
        sys.modules[module].RemoteCacheBackend = type("RemoteCacheBackend", (), {})  # type: ignore[attr-defined]
    monkeypatch.delitem(sys.modules, f"tunegate_tuners.{tuner}", raising=False)
    return importlib.import_module(f"tunegate_tuners.{tuner}")


def test_helion_finds_and_lists_what_another_process_has_put(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    door = _door(monkeypatch, "helion", "helion.autotuner.remote_cache")
    door.HelionBackend().put("hash", CONFIG)
    assert door.HelionBackend().get("hash") == CONFIG
    assert door.HelionBackend().get("other") is None
    assert list(door.HelionBackend().list(5)) == [CONFIG]


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"config": 7}', '{"config": "[]"}', "[" * 9999])
def test_what_is_no_configuration_is_a_miss_for_helion(
    text: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    door = _door(monkeypatch, "helion", "helion.autotuner.remote_cache")
    door.HelionBackend().put("hash", text)
    assert door.HelionBackend().get("hash") is None
    assert list(door.HelionBackend().list()) == []


def test_triton_gets_the_files_of_its_key(monkeypatch: pytest.MonkeyPatch) -> None:
    door = _door(monkeypatch, "triton", "triton.runtime.cache")
    door.TritonBackend("KEY").put("add.cubin", b"\x7fELF")
    door.TritonBackend("KEY").put("__grp__add.json", b"{}")
    assert door.TritonBackend("KEY").get(["add.cubin", "__grp__add.json", "add.ptx"]) == {
        "add.cubin": b"\x7fELF",
        "__grp__add.json": b"{}",
    }
    assert door.TritonBackend("OTHER").get(["add.cubin"]) == {}


KEY = "('gemm', 'Runner', (), ())"
OPERATION = hashlib.sha256(KEY.encode()).hexdigest()[:24]
ENVIRONMENT = "0123456789abcdef"
ENTRY = json.dumps({"key": KEY, "runner": "Runner", "tactic": 3}).encode()


def _entry(root: Path, operation: str = OPERATION) -> Path:
    return root / "v2" / ENVIRONMENT / "entries" / f"{operation}.json"


def _write(root: Path, content: bytes) -> None:
    _entry(root).parent.mkdir(parents=True, exist_ok=True)
    _entry(root).write_bytes(content)


def test_what_flashinfer_tunes_on_one_machine_is_there_on_the_next(
    tmp_path: Path, bucket: FileStore
) -> None:
    with shared_autotune(tmp_path / "first") as root:
        _write(root, ENTRY)
    with shared_autotune(tmp_path / "second") as root:
        assert _entry(root).read_bytes() == ENTRY
    assert len(list(lent_objects(bucket.names("")))) == 1  # nothing new, nothing written


def test_what_this_machine_has_tuned_itself_stays(tmp_path: Path) -> None:
    with shared_autotune(tmp_path / "first") as root:
        _write(root, ENTRY)
    _write(tmp_path / "second", ENTRY.replace(b"3", b"4"))
    with shared_autotune(tmp_path / "second") as root:
        assert b"4" in _entry(root).read_bytes()


@pytest.mark.parametrize(
    ("environment", "operation", "content"),
    [
        (ENVIRONMENT, "0" * 24, ENTRY),
        ("..", OPERATION, ENTRY),
        (ENVIRONMENT, OPERATION, b"not JSON"),
        (ENVIRONMENT, OPERATION, ENTRY + b" " * 70_000),
    ],
)
def test_what_is_no_entry_of_its_name_is_not_written_to_flashinfer(
    environment: str, operation: str, content: bytes, tmp_path: Path
) -> None:
    configured.configured_bucket("flashinfer").put(environment, operation, content)
    with shared_autotune(tmp_path / "root"):
        assert not [each for each in (tmp_path / "root").rglob("*") if each.is_file()]
