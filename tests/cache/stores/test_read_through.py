"""Local copies of immutable segments."""

import os
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from tests.cache.stores.store_contract import MaintainedStoreContract, StoreContract
from tests.plugins.registered_plugin import install_into, register
from tests.support.servers.moto_server import BUCKET
from tests.support.tuning_records import TARGET
from tunegate_cache.format.names import segment_name
from tunegate_cache.format.segment import segment_digest
from tunegate_cache.installed_plugins import find_plugins
from tunegate_cache.stores.files import FileStore
from tunegate_cache.stores.memory import MEMORY, MemoryStore
from tunegate_cache.stores.open_store import (
    STORE_GROUP,
    BadAddressError,
    ContainedStore,
    kind_of,
    open_store,
    store_name,
    unusable_kind,
)
from tunegate_cache.stores.read_through import ReadThroughStore
from tunegate_cache.stores.store import (
    MAX_OBJECT_BYTES,
    MaintainedStore,
    ObjectNotFoundError,
    ObjectStore,
    Pointer,
    StoreBusyError,
    StoreUnavailableError,
)
from tunegate_cache.stores.store_kind import StoreAddress, StoreKind

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


# A store that breaks its contract is trouble of the cache, and never an exception of a run.


class TestContainedStore(MaintainedStoreContract):
    @pytest.fixture
    def store(self) -> ObjectStore:
        return ContainedStore(MemoryStore(), "memory")


class Raising(MemoryStore):
    def __init__(self, error: Exception) -> None:
        super().__init__()
        self._error = error

    def read(self, name: str) -> bytes:
        raise self._error

    def names(self, prefix: str) -> Sequence[str]:
        raise self._error

    def write(self, name: str, body: bytes) -> None:
        raise self._error

    def move_pointer(self, name: str, body: bytes, expected: str | None) -> None:
        raise self._error

    def delete(self, name: str) -> None:
        raise self._error


REQUESTS: list[Callable[[MaintainedStore], object]] = [
    lambda store: store.read("a"),
    lambda store: store.read_part("a", 0, 1),
    lambda store: store.read_pointer("a"),
    lambda store: store.names("a"),
    lambda store: store.write("a", b""),
    lambda store: store.move_pointer("a", b"", None),
    lambda store: store.delete("a"),
]


@pytest.mark.parametrize("request_of", REQUESTS)
def test_any_other_exception_is_trouble_without_its_text(
    request_of: Callable[[MaintainedStore], object],
) -> None:
    store = ContainedStore(Raising(RuntimeError("https://user:secret@host")), "x")
    with pytest.raises(StoreUnavailableError, match=r"^x: RuntimeError$"):
        request_of(store)


def test_trouble_that_the_contract_knows_passes_as_it_is() -> None:
    error = StoreBusyError("asked too much")
    with pytest.raises(StoreBusyError) as raised:
        ContainedStore(Raising(error), "x").read("a")
    assert raised.value is error


class Answering(MemoryStore):
    """Every answer is of the wrong kind."""

    def read(self, name: str) -> bytes:
        return "text"  # type: ignore[return-value]

    def names(self, prefix: str) -> Sequence[str]:
        return ["another/zone"]

    def read_part(self, name: str, start: int, size: int) -> bytes:
        return bytes(MAX_OBJECT_BYTES + 1)

    def read_pointer(self, name: str) -> Pointer:
        return b"1"  # type: ignore[return-value]


@pytest.mark.parametrize(
    ("request_of", "problem"),
    [
        (lambda store: store.read("a"), "a body that is not bytes"),
        (lambda store: store.names("mine/"), "the listing of another place"),
        (lambda store: store.read_part("a", 0, 1), "an object larger than"),
        (lambda store: store.read_pointer("a"), "a pointer that is none"),
    ],
)
def test_a_nonsensical_answer_is_trouble(
    request_of: Callable[[MaintainedStore], object], problem: str
) -> None:
    with pytest.raises(StoreUnavailableError, match=f"^x: {problem}"):
        request_of(ContainedStore(Answering(), "x"))


# A store by its address.


def store_at(url: str, endpoint_url: str | None = None) -> ObjectStore:
    return open_store(StoreAddress(url=url, endpoint_url=endpoint_url, region="us-east-1"))


def test_a_directory_in_any_spelling_is_the_same_store(tmp_path: Path) -> None:
    directory = tmp_path / "with space, % and ?"
    FileStore(directory).write("a/1", b"x")
    for url in (str(directory), directory.as_uri()):
        assert store_at(url).read("a/1") == b"x"


def test_a_directory_whose_name_is_no_text_is_a_store(tmp_path: Path) -> None:
    directory = tmp_path / os.fsdecode(b"caf\xe9")
    FileStore(directory).write("a/1", b"x")
    assert store_at(str(directory)).read("a/1") == b"x"


def test_a_tilde_is_the_home_directory() -> None:
    FileStore(Path.home() / "cache").write("a/1", b"x")
    assert store_at("~/cache").read("a/1") == b"x"


def test_a_bucket_keeps_everything_under_its_prefix(endpoint: str, credentials: None) -> None:
    store_at(f"s3://{BUCKET}/located/here", endpoint).write("a/1", b"x")
    assert list(store_at(f"s3://{BUCKET}", endpoint).names("located/")) == ["located/here/a/1"]


@pytest.mark.parametrize("url", ["ftp://host/x", "gs://bucket"])
def test_an_unknown_scheme_names_those_that_are_installed(url: str) -> None:
    with pytest.raises(BadAddressError) as raised:
        store_at(url)
    assert str(raised.value) == (
        f'"{url}" is not a cache address: no store is installed for "{url.partition(":")[0]}:". '
        "Write a directory or one of file:, memory:, s3:; docs/how-to/extend.md says how to add a "
        "store"
    )


@pytest.mark.parametrize(
    ("url", "form"),
    [
        ("s3://", "write s3://bucket/prefix"),
        ("file://host/x", "write a directory, or file:///directory"),
        ("memory:x", "write memory:"),
        ("", "it is empty"),
        ("s3://[", "Invalid IPv6 URL"),
        ("~nobody-here/x", "home directory is not known. Set HOME"),
        ("s3://key:password@bucket/x", "write s3://bucket/prefix"),
        ("s3://bucket/x?signature=1", "write s3://bucket/prefix"),
        ("file:///a?b", "write a directory"),
        ("$HOME/x", "variables are not replaced"),
    ],
)
def test_an_incomplete_address_says_what_to_write(url: str, form: str) -> None:
    with pytest.raises(BadAddressError, match=form):
        store_at(url)


@pytest.mark.parametrize(
    "endpoint",
    [
        *["host:9000", "ftp://x", "http://", "http://h:99999", "$URL"],
        *["user:SECRET@host", "http://host/?X-Amz-Security-Token=SECRET"],
    ],
)
def test_an_endpoint_that_is_no_address_is_a_mistake(endpoint: str) -> None:
    with pytest.raises(BadAddressError, match="endpoint-url that is no address") as raised:
        store_at("s3://bucket", endpoint)
    assert "SECRET" not in str(raised.value)


def test_only_a_bucket_is_worth_copying() -> None:
    kinds = [kind_of(StoreAddress(url=url)) for url in ("s3://b/p", "~/x", "file:///x", "memory:")]
    assert [kind.is_remote for kind in kinds] == [True, False, False, False]


def test_two_endpoints_of_one_address_are_two_places() -> None:
    endpoints = (None, "http://a", "http://b")
    places = {store_name(StoreAddress(url="s3://b", endpoint_url=each)) for each in endpoints}
    assert len(places) == 3


def test_the_place_of_an_address_is_named_by_a_whole_digest() -> None:
    address = StoreAddress(url="s3://bucket/prefix", endpoint_url="http://host:9000")
    assert store_name(address) == "91389f148945f642f682e037fd1199b28c4ebb9d043c72405af1fb33aa6d9aa8"


def fails_to_open(_: StoreAddress) -> MaintainedStore:
    raise KeyError("password")


FAILING = StoreKind(form="x:", accepts=lambda _: True, open=fails_to_open, is_remote=False)
CONFUSED = StoreKind(
    form="x:", accepts=lambda address: bool(1 / 0), open=lambda _: MemoryStore(), is_remote=False
)
NO_KIND = "a text"


@pytest.mark.parametrize(
    ("value", "reason"),
    [
        ("no.such.module:STORE", r"^x 1\.0: .* cannot be loaded \(ModuleNotFoundError: No module"),
        (f"{__name__}:NO_KIND", r"^x 1\.0: .* is no StoreKind$"),
        (f"{__name__}:FAILING", r"^the store could not be opened: KeyError$"),
    ],
)
def test_a_plugin_that_fails_is_a_store_that_says_so_at_every_request(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, value: str, reason: str
) -> None:
    register(tmp_path, "x-1.0", STORE_GROUP, "x", value)
    install_into(tmp_path, monkeypatch)
    store = store_at("x:anything")
    for _ in range(2):
        with pytest.raises(StoreUnavailableError, match=reason):
            store.read("a/1")


def test_an_address_that_a_plugin_cannot_judge_is_tried(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    register(tmp_path, "x-1.0", STORE_GROUP, "x", f"{__name__}:CONFUSED")
    install_into(tmp_path, monkeypatch)
    assert store_at("x:anything").names("") == []


def test_our_three_stores_are_registered_like_anybody_elses() -> None:
    assert list(find_plugins(STORE_GROUP)) == ["file", "memory", "s3"]
    assert kind_of(StoreAddress(url="memory:")) is MEMORY


@pytest.mark.parametrize("url", ["s3 ://bucket/x", "1x://y", "://y"])
def test_what_looks_like_an_address_is_no_directory(url: str) -> None:
    with pytest.raises(BadAddressError, match="is not a scheme"):
        store_at(url)


def test_a_place_whose_name_is_no_text_has_a_name_for_its_copies() -> None:
    assert len(store_name(StoreAddress(url=os.fsdecode(b"caf\xe9")))) == 64


# A store that cannot be had says why, whatever it is asked.


@pytest.mark.parametrize("request_of", REQUESTS)
def test_each_request_fails_with_a_reason(request_of: Callable[[MaintainedStore], object]) -> None:
    address = StoreAddress(url="x:y")
    kind = unusable_kind("the plugin is broken")
    assert kind.accepts(address)
    with pytest.raises(StoreUnavailableError, match=r"^the plugin is broken$"):
        request_of(kind.open(address))
