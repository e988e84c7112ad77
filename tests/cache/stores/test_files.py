"""The directory store: its contract, and what happens when the disk or the writer dies."""

import errno
import fcntl
import hashlib
import os
import subprocess
import sys
import threading
import time
from collections.abc import Sequence
from pathlib import Path

import pytest

from tests.cache.stores.store_contract import MaintainedStoreContract
from tests.support.programs import run_program
from tunegate_cache.stores.conformance import OBJECT_RULES, POINTER_RULES, STORE_RULES, probe
from tunegate_cache.stores.files import FileStore
from tunegate_cache.stores.memory import MemoryStore
from tunegate_cache.stores.s3 import S3Store
from tunegate_cache.stores.store import (
    MaintainedStore,
    ObjectConflictError,
    ObjectNotFoundError,
    ObjectStore,
    Pointer,
    StoreTimedOutError,
    StoreUnavailableError,
)

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


@pytest.mark.parametrize("kind", ["pipe", "device", "link", "folder"])
def test_what_is_no_plain_file_is_no_object(tmp_path: Path, kind: str) -> None:
    """A pipe is never read to its end, and neither is /dev/zero, whose size is 0."""
    store = FileStore(tmp_path)
    store.write("zone/real", b"body")
    at = tmp_path / "zone" / "HEAD"
    if kind == "pipe":
        os.mkfifo(at)
    elif kind == "folder":
        at.mkdir()
    else:
        at.symlink_to("/dev/zero" if kind == "device" else "real")
    assert store.names("zone/") == ["zone/real"]
    with pytest.raises(ObjectConflictError):
        store.write("zone/HEAD", b"another body")
    if kind == "folder":
        with pytest.raises(StoreUnavailableError, match="zone/HEAD: Is a directory"):
            store.move_pointer("zone/HEAD", b"next", None)
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


def test_folders_deeper_than_a_path_can_say_hide_nothing_else(tmp_path: Path) -> None:
    store = FileStore(tmp_path)
    store.write("zone/real", b"body")
    parts = ["x" * 200] * 21
    at = os.open(tmp_path / "zone", os.O_RDONLY)
    for part in parts:
        os.mkdir(part, dir_fd=at)
        above, at = at, os.open(part, os.O_RDONLY, dir_fd=at)
        os.close(above)
    os.close(at)
    assert store.names("") == ["zone/real"]


def test_a_closed_folder_is_named_and_the_others_are_listed_beside_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store, scan = FileStore(tmp_path), os.scandir
    for name in ("a/real", "b/real"):
        store.write(name, b"body")

    def refuse(path: str) -> object:
        if path.endswith("/a"):
            raise PermissionError(errno.EACCES, "Permission denied", path)
        return scan(path)

    monkeypatch.setattr(os, "scandir", refuse)
    with pytest.raises(StoreUnavailableError, match="/a: Permission denied") as raised:
        store.names("")
    assert raised.value.listed == ["b/real"]


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
    store = FileStore(tmp_path / "root")
    for ask in (lambda: store.write("a/1", b"x"), lambda: store.names("a/")):
        with pytest.raises(StoreUnavailableError, match="root"):
            ask()


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
    for name, age_seconds in (("old", 2 * 86400), ("old.lock", 2 * 86400), ("new", 60)):
        (partials / name).write_bytes(b"half")
        os.utime(partials / name, (time.time() - age_seconds,) * 2)
    store = FileStore(tmp_path)
    store.write("a/1", b"x")
    assert [path.name for path in partials.iterdir()] == ["new"]
    assert list(store.names("")) == ["a/1"]


def test_a_lock_that_somebody_has_is_never_removed_and_waited_for_a_while(tmp_path: Path) -> None:
    """Two would move HEAD at once, and a revocation would be lost. A stopped one would stop all."""
    store = FileStore(tmp_path, lock_seconds=0.0)
    store.move_pointer("HEAD", b"1", None)
    (lock,) = (tmp_path / ".partial").iterdir()
    with lock.open() as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        os.utime(lock, (0, 0))
        store.write("a/1", b"x")
        with pytest.raises(StoreTimedOutError, match="lock of HEAD is held"):
            store.move_pointer("HEAD", b"2", store.read_pointer("HEAD").tag)
    os.utime(lock, (0, 0))
    store.move_pointer("HEAD", b"2", store.read_pointer("HEAD").tag)
    assert lock.stat().st_mtime > 0
    assert list((tmp_path / ".partial").iterdir()) == [lock]


@pytest.mark.parametrize("error", [errno.ENOLCK, errno.ENOTSUP])
def test_where_files_cannot_be_locked_a_pointer_moves_all_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, error: int
) -> None:
    def refuse(*_: int) -> None:
        raise OSError(error, os.strerror(error))

    monkeypatch.setattr("fcntl.flock", refuse)
    FileStore(tmp_path).move_pointer("HEAD", b"1", None)
    assert FileStore(tmp_path).read("HEAD") == b"1"


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


class Stuck(MemoryStore):
    """A store behind a gateway that changes every tag."""

    def move_pointer(self, name: str, body: bytes, expected: str | None) -> None:
        super().move_pointer(name, body, None if expected is None else "changed")


class Late(MemoryStore):
    """A store that shows what was written a moment later."""

    def read_pointer(self, name: str) -> Pointer:
        raise ObjectNotFoundError(name)


class Partless(MemoryStore):
    """A store behind a proxy that cuts out the wrong part."""

    def read_part(self, name: str, start: int, size: int) -> bytes:
        return self.read(name)


def broken(store: MaintainedStore) -> dict[str, str]:
    return {finding.name: finding.detail for finding in probe(store) if not finding.ok}


def test_a_store_that_keeps_its_promises_is_found_to_do_so(bucket: S3Store) -> None:
    for store in (MemoryStore(), bucket):
        assert broken(store) == {}
        assert list(store.names("ms1/probe/")) == []


class Forgetting(MemoryStore):
    def read(self, name: str) -> bytes:
        return b"" if name in self._objects else super().read(name)


class Inventing(MemoryStore):
    def read(self, name: str) -> bytes:
        return self._objects.get(name, b"")


class Flat(MemoryStore):
    def names(self, prefix: str) -> Sequence[str]:
        return [name for name in super().names(prefix) if "/" not in name.removeprefix(prefix)]


class Refusing(MemoryStore):
    def write(self, name: str, body: bytes) -> None:
        if name in self._objects:
            raise ObjectConflictError(name)
        super().write(name, body)


class OverwritingWhenRaced(MemoryStore):
    """Takes writes of several threads for one after the other."""

    def write(self, name: str, body: bytes) -> None:
        if threading.current_thread() is threading.main_thread():
            super().write(name, body)
        else:
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


SWAPS = "compares before it swaps (If-Match)"


@pytest.mark.parametrize(
    ("store", "rule", "said"),
    [
        (Forgetting(), "reads what was written", "was written"),
        (Inventing(), "says what is missing", "raises no"),
        (Flat(), "lists what was written", "are listed"),
        (Partless(), "reads parts of objects", "is read"),
        (Refusing(), "takes an equal write for success", "a new name is refused"),
        (Overwriting(), "refuses to overwrite (If-None-Match)", "forbid it by policy"),
        (OverwritingWhenRaced(), "lets one of racing writers win", "forbid it by policy"),
        (Unconditional(), SWAPS, "not there any more; run compaction from one scheduled job"),
        (Unconditional(), "lets one of racing swaps win", "moved it from the same version"),
        (Stuck(), SWAPS, "a pointer does not move from the version that is there"),
        (Late(), SWAPS, "what was just written is not there"),
        (Strict(), "takes an equal swap for success", "says something else"),
        (Undeletable(), "deletes", "no right to delete"),
        (Lingering(), "deletes", "a deleted object is still there"),
    ],
)
def test_a_store_that_breaks_a_rule_is_found(store: MaintainedStore, rule: str, said: str) -> None:
    """No liar ends the check: `tunegate cache probe` is what one runs because of it."""
    assert said in broken(store)[rule]


def test_the_cache_cannot_do_without_reading_and_writing() -> None:
    optional = {rule.name for rule in OBJECT_RULES if not rule.is_needed}
    assert optional == {"refuses to overwrite (If-None-Match)", "lets one of racing writers win"}
    assert [rule.name for rule in POINTER_RULES if rule.is_needed] == [
        "takes an equal swap for success"
    ]
    assert all(rule.advice for rule in STORE_RULES if not rule.is_needed)
