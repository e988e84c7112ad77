"""Local copies of immutable segments."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cache.stores.store_contract import StoreContract
from tests.support.tuning_records import TARGET
from tunegate_cache.format.names import segment_name
from tunegate_cache.format.segment import segment_digest
from tunegate_cache.stores.files import FileStore
from tunegate_cache.stores.memory import MemoryStore
from tunegate_cache.stores.read_through import ReadThroughStore
from tunegate_cache.stores.store import ObjectNotFoundError, ObjectStore

BODY = b"a segment"
NAME = segment_name(
    "main", TARGET, milliseconds=1, writer="0" * 8, digest=segment_digest(BODY)
).name


class TestReadThroughStore(StoreContract):
    @pytest.fixture
    def store(self, tmp_path: Path) -> ObjectStore:
        return ReadThroughStore(FileStore(tmp_path), MemoryStore())


def test_a_segment_is_fetched_once(tmp_path: Path) -> None:
    far = MemoryStore()
    far.write(NAME, BODY)
    assert ReadThroughStore(FileStore(tmp_path), far).read(NAME) == BODY
    assert ReadThroughStore(FileStore(tmp_path), MemoryStore()).read(NAME) == BODY


def test_a_damaged_copy_is_fetched_again_and_healed(tmp_path: Path) -> None:
    near, far = FileStore(tmp_path), MemoryStore()
    far.write(NAME, BODY)
    near.write(NAME, b"damaged")
    assert ReadThroughStore(near, far).read(NAME) == BODY
    assert near.read(NAME) == BODY


def test_what_its_name_does_not_prove_is_not_kept(tmp_path: Path) -> None:
    near, far = FileStore(tmp_path), MemoryStore()
    far.write(NAME, b"not what the name says")
    far.write("HEAD", b"mutable")
    store = ReadThroughStore(near, far)
    assert store.read(NAME) == b"not what the name says"
    assert store.read("HEAD") == b"mutable"
    assert list(near.names("")) == []


def test_what_was_written_is_kept_and_a_failed_write_is_not(tmp_path: Path) -> None:
    near, far = FileStore(tmp_path / "near"), FileStore(tmp_path / "far")
    ReadThroughStore(near, far).write(NAME, BODY)
    assert near.read(NAME) == BODY
    with pytest.raises(ObjectNotFoundError):
        ReadThroughStore(FileStore(tmp_path / "other"), MemoryStore()).read(NAME)


def test_an_unusable_local_disk_costs_only_the_copy(tmp_path: Path) -> None:
    (tmp_path / "near").write_bytes(b"a file, not a directory")
    far = MemoryStore()
    far.write(NAME, BODY)
    assert ReadThroughStore(FileStore(tmp_path / "near"), far).read(NAME) == BODY
