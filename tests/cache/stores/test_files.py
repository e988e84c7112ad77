"""The directory store: its contract, and what happens when the disk or the writer dies."""

import hashlib
import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from tests.cache.stores.store_contract import MaintainedStoreContract
from tests.support.programs import run_program
from tunegate_cache.stores.conformance import OBJECT_RULES, POINTER_RULES, probe, raises
from tunegate_cache.stores.files import FileStore
from tunegate_cache.stores.memory import MemoryStore
from tunegate_cache.stores.s3 import S3Store
from tunegate_cache.stores.store import (
    MaintainedStore,
    ObjectNotFoundError,
    ObjectStore,
    PointerMovedError,
    StoreUnavailableError,
)
from tunegate_cache.stores.store_kind import StoreAddress

WRITE_FOR_EVER = """
import hashlib, itertools, sys
from pathlib import Path
from tunegate_cache.stores.files import FileStore
store = FileStore(Path(sys.argv[1]))
for number in itertools.count():
    body = b"%d" % number * 20000
    store.write("a/" + hashlib.sha256(body).hexdigest(), body)
    print(number, flush=True)
"""
WRITE_ON_A_FULL_DISK = """
import resource, signal, sys
from pathlib import Path
from tunegate_cache.stores.files import FileStore
from tunegate_cache.stores.store import StoreUnavailableError
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000))
try:
    FileStore(Path(sys.argv[1])).write("a/1", b"x" * 5000)
except StoreUnavailableError as error:
    print(error)
"""


class TestFileStore(MaintainedStoreContract):
    @pytest.fixture
    def store(self, tmp_path: Path) -> ObjectStore:
        return FileStore(tmp_path / "store")


@pytest.mark.parametrize("kind", ["pipe", "device", "link"])
def test_what_is_no_plain_file_is_no_object(tmp_path: Path, kind: str) -> None:
    """A pipe is never read to its end, and neither is /dev/zero, whose size is 0."""
    store = FileStore(tmp_path)
    store.write("zone/real", b"body")
    at = tmp_path / "zone" / "HEAD"
    if kind == "pipe":
        os.mkfifo(at)
    else:
        at.symlink_to("/dev/zero" if kind == "device" else "real")
    assert store.names("zone/") == ["zone/real"]
    for read in (store.read, store.read_pointer, lambda name: store.read_part(name, 0, 4)):
        with pytest.raises(ObjectNotFoundError):
            read("zone/HEAD")


def test_links_that_lead_upwards_are_not_followed(tmp_path: Path) -> None:
    """Two of them would be two to the power of forty directories."""
    store = FileStore(tmp_path)
    store.write("zone/real", b"body")
    for name in ("first", "second"):
        (tmp_path / "zone" / name).symlink_to(tmp_path)
    assert store.names("") == ["zone/real"]


@pytest.mark.parametrize("name", ["../secret", "/secret", "a/../../secret", "a//b", "", "a\0b"])
def test_a_name_that_is_no_path_inside_is_refused(tmp_path: Path, name: str) -> None:
    (tmp_path / "secret").write_bytes(b"x")
    store = FileStore(tmp_path / "store")
    with pytest.raises(StoreUnavailableError, match="cannot be the name of an object"):
        store.read(name)
    with pytest.raises(StoreUnavailableError, match="cannot be the name of an object"):
        store.write(name, b"y")
    assert (tmp_path / "secret").read_bytes() == b"x"


def test_a_root_that_is_a_file_is_unavailable(tmp_path: Path) -> None:
    (tmp_path / "root").write_bytes(b"")
    with pytest.raises(StoreUnavailableError, match="root"):
        FileStore(tmp_path / "root").write("a/1", b"x")


def test_a_full_disk_is_unavailable_and_leaves_nothing_behind(tmp_path: Path) -> None:
    done = run_program([sys.executable, "-c", WRITE_ON_A_FULL_DISK, str(tmp_path)], check=True)
    assert "File too large" in done.stdout
    assert [path for path in tmp_path.rglob("*") if path.is_file()] == []


def test_a_writer_killed_at_any_moment_leaves_only_whole_objects(tmp_path: Path) -> None:
    acknowledged = 0
    for attempt in range(4):
        with subprocess.Popen(
            [sys.executable, "-c", WRITE_FOR_EVER, str(tmp_path)], stdout=subprocess.PIPE
        ) as writer:
            assert writer.stdout is not None
            writer.stdout.readline()
            time.sleep(0.02 * attempt)
            writer.kill()
            acknowledged = max(acknowledged, 1 + len(writer.stdout.readlines()))
    store = FileStore(tmp_path)
    found = store.names("")
    assert len(found) >= acknowledged
    assert all(hashlib.sha256(store.read(n)).hexdigest() == n.removeprefix("a/") for n in found)


def test_what_a_killed_writer_left_goes_after_a_day(tmp_path: Path) -> None:
    partials = tmp_path / ".partial"
    partials.mkdir()
    for name, age_seconds in (("old", 2 * 86400), ("new", 60)):
        (partials / name).write_bytes(b"half")
        os.utime(partials / name, (time.time() - age_seconds,) * 2)
    store = FileStore(tmp_path)
    store.write("a/1", b"x")
    assert [path.name for path in partials.iterdir()] == ["new"]
    assert list(store.names("")) == ["a/1"]


@pytest.mark.parametrize(
    ("root", "umask", "folder", "file", "lock"),
    [(0o755, 0o022, 0o755, 0o644, 0o644), (0o2775, 0o077, 0o2775, 0o444, 0o664)],
)
def test_what_is_made_is_as_the_umask_or_the_mode_of_a_shared_root_says(
    root: int, umask: int, folder: int, file: int, lock: int, tmp_path: Path
) -> None:
    """A second user of a shared root could write nothing below what the first one had made."""
    tmp_path.chmod(root)
    before = os.umask(umask)
    try:
        FileStore(tmp_path).write("a/b/1", b"x")
        FileStore(tmp_path).move_pointer("a/b/2", b"x", None)
    finally:
        os.umask(before)
    modes = {path.name: path.stat().st_mode & 0o7777 for path in tmp_path.rglob("*")}
    (lock_mode,) = (modes.pop(name) for name in list(modes) if name.endswith(".lock"))
    assert lock_mode == lock
    assert modes == {"a": folder, "b": folder, ".partial": folder, "1": file, "2": file}


def test_a_removed_copy_can_be_written_anew(tmp_path: Path) -> None:
    store = FileStore(tmp_path)
    store.write("a/1", b"x")
    store.delete("a/1")
    store.delete("a/1")
    store.write("a/1", b"y")
    assert store.read("a/1") == b"y"


# The store in memory keeps the contract.


class TestMemoryStore(MaintainedStoreContract):
    @pytest.fixture
    def store(self) -> ObjectStore:
        return MemoryStore()


class Overwriting(MemoryStore):
    """A store like servers that ignore If-None-Match."""

    def write(self, name: str, body: bytes) -> None:
        self._objects[name] = body


class Unconditional(MemoryStore):
    """A store like servers that ignore If-Match."""

    def move_pointer(self, name: str, body: bytes, expected: str | None) -> None:
        self._objects[name] = body


class Partless(MemoryStore):
    """A store behind a proxy that cuts out the wrong part."""

    def read_part(self, name: str, start: int, size: int) -> bytes:
        return self.read(name)


def failed(store: MaintainedStore) -> set[str]:
    return {finding.name for finding in probe(store) if not finding.ok}


def test_a_store_that_keeps_its_promises_is_found_to_do_so(bucket: S3Store) -> None:
    for store in (MemoryStore(), bucket):
        assert failed(store) == set()
        assert list(store.names("ms1/probe/")) == []


@pytest.mark.parametrize(
    ("make", "broken", "advice"),
    [
        (Overwriting, "refuses to overwrite (If-None-Match)", "forbid it by policy"),
        (Unconditional, "compares before it swaps (If-Match)", "one scheduled job"),
    ],
)
def test_a_store_without_conditions_works_and_says_what_to_mind(
    make: Callable[[], MaintainedStore], broken: str, advice: str
) -> None:
    found = {finding.name: finding for finding in probe(make())}
    assert not found[broken].ok
    assert not found[broken].needed
    assert advice in found[broken].detail


def test_what_the_cache_cannot_do_without_is_needed() -> None:
    (broken,) = (finding for finding in probe(Partless()) if not finding.ok)
    assert (broken.name, broken.needed) == ("reads parts of objects", True)


class Forgetting(MemoryStore):
    def read(self, name: str) -> bytes:
        return b"" if name in self._objects else super().read(name)


class Inventing(MemoryStore):
    def read(self, name: str) -> bytes:
        return self._objects.get(name, b"")


class Flat(MemoryStore):
    def names(self, prefix: str) -> Sequence[str]:
        return [name for name in super().names(prefix) if "/" not in name.removeprefix(prefix)]


class Whole(MemoryStore):
    def read_part(self, name: str, start: int, size: int) -> bytes:
        return self.read(name)


class Refusing(MemoryStore):
    def write(self, name: str, body: bytes) -> None:
        if name in self._objects:
            raise TypeError(name)
        super().write(name, body)


class ObjectRulesOverwriting(MemoryStore):
    def write(self, name: str, body: bytes) -> None:
        self._objects[name] = body


class OverwritingWhenRaced(MemoryStore):
    """Takes writes of several threads for one after the other."""

    def write(self, name: str, body: bytes) -> None:
        if threading.current_thread() is threading.main_thread():
            super().write(name, body)
        else:
            self._objects[name] = body


def broken(store: ObjectStore) -> list[str]:
    """The rules that the store does not keep: it says so, or cannot be asked at all."""
    found = []
    for number, rule in enumerate(OBJECT_RULES):
        try:
            problem = rule.problem(store, f"place/{number}")
        except TypeError:
            problem = "cannot be asked"
        if problem:
            found.append(rule.name)
    return found


def test_a_store_in_memory_keeps_every_rule() -> None:
    assert broken(MemoryStore()) == []


@pytest.mark.parametrize(
    ("store", "rule"),
    [
        (Forgetting(), "reads what was written"),
        (Inventing(), "says what is missing"),
        (Flat(), "lists what was written"),
        (Whole(), "reads parts of objects"),
        (Refusing(), "takes an equal write for success"),
        (ObjectRulesOverwriting(), "refuses to overwrite (If-None-Match)"),
        (OverwritingWhenRaced(), "lets one of racing writers win"),
    ],
)
def test_a_store_that_breaks_a_rule_is_found_out(store: ObjectStore, rule: str) -> None:
    assert rule in broken(store)


def test_the_cache_cannot_do_without_reading_and_writing() -> None:
    optional = {rule.name for rule in OBJECT_RULES if not rule.is_needed}
    assert optional == {"refuses to overwrite (If-None-Match)", "lets one of racing writers win"}
    assert all(rule.advice for rule in OBJECT_RULES if not rule.is_needed)


class PointerRulesUnconditional(MemoryStore):
    def move_pointer(self, name: str, body: bytes, expected: str | None) -> None:
        self._objects[name] = body


class Strict(MemoryStore):
    """Refuses to move a pointer to what it says already."""

    def move_pointer(self, name: str, body: bytes, expected: str | None) -> None:
        if self._objects.get(name) == body:
            self._objects[name] = b"moved twice"
            return
        super().move_pointer(name, body, expected)


class Undeletable(MemoryStore):
    def delete(self, name: str) -> None:
        raise StoreUnavailableError("no right to delete")


class Lingering(MemoryStore):
    def delete(self, name: str) -> None:
        pass


def pointer_rules_broken(store: MaintainedStore) -> dict[str, str]:
    found = {}
    for number, rule in enumerate(POINTER_RULES):
        try:
            found[rule.name] = rule.problem(store, f"place/{number}")
        except PointerMovedError:
            found[rule.name] = "cannot be asked"
    return {name: problem for name, problem in found.items() if problem}


def test_pointer_rules_a_store_in_memory_keeps_every_rule() -> None:
    assert pointer_rules_broken(MemoryStore()) == {}


def test_a_store_that_ignores_conditions_swaps_what_others_have_swapped() -> None:
    found = pointer_rules_broken(PointerRulesUnconditional())
    assert "not there any more" in found["compares before it swaps (If-Match)"]
    assert "moved it from the same version" in found["lets one of racing swaps win"]
    assert "takes an equal swap for success" not in found


def test_a_store_that_takes_an_equal_swap_for_another_is_found_out() -> None:
    assert "takes an equal swap for success" in pointer_rules_broken(Strict())


@pytest.mark.parametrize(
    ("store", "said"),
    [(Undeletable(), "no right to delete"), (Lingering(), "a deleted object is still there")],
)
def test_a_store_that_deletes_nothing_says_why(store: MaintainedStore, said: str) -> None:
    assert pointer_rules_broken(store)["deletes"] == said


def test_only_an_equal_swap_is_needed() -> None:
    assert [rule.name for rule in POINTER_RULES if rule.is_needed] == [
        "takes an equal swap for success"
    ]
    assert all(rule.advice for rule in POINTER_RULES if not rule.is_needed)


NOTHING: dict[str, str] = {}


def test_only_the_exception_that_is_asked_for_counts() -> None:
    assert raises(KeyError, lambda: NOTHING["a"])
    assert raises(LookupError, lambda: NOTHING["a"])
    assert not raises(KeyError, lambda: None)
    with pytest.raises(KeyError):
        raises(ValueError, lambda: NOTHING["a"])


def test_an_address_has_the_parts_of_its_url() -> None:
    parts = StoreAddress(url="s3://bucket/a/prefix").parts
    assert (parts.scheme, parts.netloc, parts.path) == ("s3", "bucket", "/a/prefix")


def test_an_address_that_is_no_url_has_no_parts() -> None:
    with pytest.raises(ValueError, match="IPv6"):
        _ = StoreAddress(url="s3://[bucket").parts
