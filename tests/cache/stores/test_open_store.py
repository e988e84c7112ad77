"""Addresses and the stores they name."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.moto_server import BUCKET
from tunegate_cache.stores.files import FileStore
from tunegate_cache.stores.memory import MemoryStore
from tunegate_cache.stores.open_store import UnknownAddressError, is_remote, locate, place_name
from tunegate_cache.stores.store import ObjectStore


def located(url: str, endpoint_url: str | None = None) -> ObjectStore:
    return locate(url, endpoint_url=endpoint_url, region="us-east-1")


def test_a_directory_in_any_spelling_is_the_same_store(tmp_path: Path) -> None:
    directory = tmp_path / "with space"
    FileStore(directory).write("a/1", b"x")
    for url in (str(directory), f"file://{directory}", directory.as_uri()):
        assert located(url).read("a/1") == b"x"


def test_a_tilde_is_the_home_directory() -> None:
    FileStore(Path.home() / "cache").write("a/1", b"x")
    assert located("~/cache").read("a/1") == b"x"


def test_a_bucket_keeps_everything_under_its_prefix(endpoint: str, credentials: None) -> None:
    located(f"s3://{BUCKET}/located/here", endpoint).write("a/1", b"x")
    assert list(located(f"s3://{BUCKET}", endpoint).names("located/")) == ["located/here/a/1"]


def test_memory_is_a_store_too() -> None:
    assert isinstance(located("memory:"), MemoryStore)


@pytest.mark.parametrize("url", ["", "ftp://host/x", "s3://", "gs://bucket", "file://host/x"])
def test_an_unknown_address_says_what_to_write(url: str) -> None:
    with pytest.raises(UnknownAddressError, match="write s3://bucket/prefix or a directory"):
        located(url)


def test_only_a_bucket_is_worth_copying() -> None:
    assert [is_remote(url) for url in ("s3://b/p", "~/x", "file:///x", "memory:")] == [
        True,
        False,
        False,
        False,
    ]


def test_two_endpoints_of_one_address_are_two_places() -> None:
    places = {place_name("s3://b", endpoint_url=e) for e in (None, "http://a", "http://b")}
    assert len(places) == 3
