from __future__ import annotations

import itertools
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cache.store_contract import StoreContract
from tests.support.moto_server import BUCKET, CREDENTIALS, free_port, moto_server
from tunegate_cache.files import FileStore
from tunegate_cache.locate import UnknownAddressError, locate
from tunegate_cache.memory import MemoryStore
from tunegate_cache.read_only import ReadOnlyStore
from tunegate_cache.read_through import ReadThroughStore
from tunegate_cache.s3 import S3Store
from tunegate_cache.store import ObjectNotFoundError, ObjectStore, StoreUnavailableError

_prefixes = itertools.count()


@pytest.fixture(scope="module")
def s3_url() -> Iterator[str]:
    with moto_server() as url:
        yield url


@pytest.fixture
def credentials(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in CREDENTIALS.items():
        monkeypatch.setenv(name, value)


class TestMemoryStore(StoreContract):
    @pytest.fixture
    def store(self) -> ObjectStore:
        return MemoryStore()


class TestFileStore(StoreContract):
    @pytest.fixture
    def store(self, tmp_path: Path) -> ObjectStore:
        return FileStore(tmp_path)

    def test_an_unfinished_write_is_not_listed(self, tmp_path: Path) -> None:
        (tmp_path / "a").mkdir()
        (tmp_path / "a" / ".partial-x").write_bytes(b"half")
        assert list(FileStore(tmp_path).names("a/")) == []

    def test_a_name_that_leaves_the_directory_is_not_found(self, tmp_path: Path) -> None:
        (tmp_path / "secret").write_bytes(b"x")
        with pytest.raises(ObjectNotFoundError):
            FileStore(tmp_path / "store").read("../secret")

    def test_a_root_that_is_a_file_is_unavailable(self, tmp_path: Path) -> None:
        (tmp_path / "root").write_bytes(b"")
        with pytest.raises(StoreUnavailableError, match="root"):
            FileStore(tmp_path / "root").write("a/1", b"x")


class TestReadThroughStore(StoreContract):
    @pytest.fixture
    def store(self, tmp_path: Path) -> ObjectStore:
        return ReadThroughStore(FileStore(tmp_path), MemoryStore())

    def test_a_copy_answers_when_the_far_store_is_gone(self, tmp_path: Path) -> None:
        near, far = FileStore(tmp_path), MemoryStore()
        far.write("a/1", b"x")
        assert ReadThroughStore(near, far).read("a/1") == b"x"
        assert ReadThroughStore(near, MemoryStore()).read("a/1") == b"x"


class TestS3Store(StoreContract):
    @pytest.fixture
    def store(self, s3_url: str, credentials: None) -> ObjectStore:
        prefix = f"test-{next(_prefixes)}"
        return S3Store(BUCKET, prefix, endpoint_url=s3_url, region="us-east-1")

    def test_more_names_than_a_page_holds_are_all_listed(self, store: ObjectStore) -> None:
        for number in range(1005):
            store.write(f"many/{number:04d}", b"")
        assert len(store.names("many/")) == 1005

    def test_a_missing_bucket_is_unavailable_and_names_no_secret(
        self, s3_url: str, credentials: None
    ) -> None:
        store = S3Store("absent", "", endpoint_url=s3_url, region="us-east-1")
        with pytest.raises(StoreUnavailableError, match=r"^s3://absent: NoSuchBucket$"):
            store.write("a/1", b"x")

    def test_a_server_that_is_not_there_is_unavailable_within_seconds(
        self, credentials: None
    ) -> None:
        url = f"http://127.0.0.1:{free_port()}"
        store = S3Store(BUCKET, "", endpoint_url=url, region="us-east-1")
        with pytest.raises(StoreUnavailableError, match="s3://tuning"):
            store.read("a/1")


def test_a_read_only_store_refuses_to_write_and_reads() -> None:
    inner = MemoryStore()
    inner.write("a/1", b"x")
    store = ReadOnlyStore(inner)
    assert store.read("a/1") == b"x"
    with pytest.raises(StoreUnavailableError):
        store.write("a/2", b"x")


@pytest.mark.parametrize("url", ["ftp://host/x", "s3://", "gs://bucket"])
def test_an_unknown_address_says_what_to_write(url: str) -> None:
    with pytest.raises(UnknownAddressError, match="write s3://bucket/prefix or a directory"):
        locate(url, endpoint_url=None, region=None, tier=None)
