"""Local copies of immutable segments."""

from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from tests.cache.stores.store_contract import MaintainedStoreContract, StoreContract
from tests.support.tuning_records import TARGET
from tunegate_cache.format.names import segment_name
from tunegate_cache.format.segment import segment_digest
from tunegate_cache.stores.files import FileStore
from tunegate_cache.stores.memory import MemoryStore
from tunegate_cache.stores.open_store import ContainedStore
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
