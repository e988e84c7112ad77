from __future__ import annotations

import json
import os
import time
from pathlib import Path

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from tests.support.reference_page import command_section

from tunegate.cli.main import main
from tunegate_cache.format.signing import Signer, TrustedKeys, public_text
from tunegate_cache.protocol.trust import Trust
from tunegate_cache.stores.files import FileStore
from tunegate_cache.stores.store import MAX_OBJECT_BYTES
from tunegate_tuners.bucket import Bucket
from tunegate_tuners.command import COMMAND
from tunegate_tuners.lent_gc import unneeded_objects
from tunegate_tuners.lent_objects import LentObject

DAY_MS = 86_400_000
NOW_MS = 1_800_000_000_000


def _object(age_days: float, *, key: str = "k", size: int = 1, zone: str = "main") -> LentObject:
    return LentObject(
        zone=zone,
        tool="helion",
        key=key,
        file="f",
        milliseconds=int(NOW_MS - age_days * DAY_MS),
        size=size,
        digest="0" * 64,
    )


def _unneeded(*found: LentObject, max_bytes: int = 100) -> list[LentObject]:
    return unneeded_objects(found, now_ms=NOW_MS, days=90, max_bytes=max_bytes)


def test_what_was_superseded_goes_after_an_hour() -> None:
    old, new, newest = _object(3), _object(2), _object(0.001)
    assert _unneeded(new, old) == [old]
    assert _unneeded(newest, new, old) == [old]


def test_what_is_old_or_from_the_future_goes() -> None:
    old, future = _object(91), _object(-1, key="future")
    assert _unneeded(old, future, _object(1, key="other")) == [future, old]


def test_the_oldest_go_where_a_zone_is_over_its_quota() -> None:
    first, second, third = (
        _object(age, key=key, size=40) for age, key in ((3, "a"), (2, "b"), (1, "c"))
    )
    elsewhere = _object(3, zone="rel", size=40)
    assert _unneeded(first, second, third, elsewhere) == [first]


def test_the_command_counts_and_deletes(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    store = FileStore(tmp_path / "bucket")
    old = _object(20_000)
    store.write(old.name, b"x")
    store.write("ms1/z/main/g/0/other", b"not a lent object")
    command = ["lent-gc", "--json", "--cache-url", str(tmp_path / "bucket")]
    assert main([*command, "--dry-run"]) == 0
    assert json.loads(capsys.readouterr().out)["counts"][0]["deleted"] == 1
    assert store.read(old.name)
    assert main(command) == 0
    assert store.names("") == ["ms1/z/main/g/0/other"]


def test_what_nobody_signed_has_nothing_deleted_that_is_signed(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A role that may write but not delete put a newer object under the key, and one that fills the
    zone; the daily collection must not do the deleting for it."""
    key = Ed25519PrivateKey.from_private_bytes(b"5" * 32)
    config = (
        "models: [{path: '*.onnx'}]\ntargets: [{name: cpu}]\n"
        f"cache: {{trusted-keys: {{main: ['{public_text(key.public_key())}']}}}}\n"
    )
    (tmp_path / "tunegate.yaml").write_text(config)
    monkeypatch.chdir(tmp_path)
    store, hour = FileStore(tmp_path / "bucket"), 3600
    now = time.time()

    def bucket(signer: Signer | None, hours_ago: float) -> Bucket:
        keys = TrustedKeys({"main": (public_text(key.public_key()),)})
        return Bucket(
            store,
            "helion",
            zone="main",
            read_zones=("main",),
            trust=Trust(keys=keys, signer=signer),
            seconds=lambda: now - hours_ago * hour,
        )

    bucket(Signer(key), 9).put("k", "f", b"superseded")
    bucket(Signer(key), 5).put("k", "f", b"signed")
    bucket(None, 2).put("k", "f", b"nobody's")
    bucket(None, 2).put("other", "f", b"x" * 900)
    (huge,) = [name for name in store.names("") if "/other/" in name]
    os.truncate(tmp_path / "bucket" / huge, MAX_OBJECT_BYTES + 1)  # no store reads one of this size
    command = ["lent-gc", "--json", "--cache-url", str(tmp_path / "bucket")]
    for quota in ("10", "0.0000008"):
        assert main([*command, "--max-gb", quota]) == 0, capsys.readouterr().err
        assert bucket(None, 0).get("k", ["f"]) == {"f": b"signed"}
    assert len(store.names("")) == 1


def test_the_page_of_the_extra_lists_every_option() -> None:
    page = (Path(__file__).parents[2] / "README.md").read_text()
    shared = "](../../../docs/commands.md#options-"
    assert command_section(COMMAND).strip("\n").replace("](#options-", shared) in page
