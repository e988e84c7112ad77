"""The directory store: its contract, and what happens when the disk or the writer dies."""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.cache.stores.store_contract import MaintainedStoreContract
from tunegate_cache.stores.files import FileStore
from tunegate_cache.stores.memory import MemoryStore
from tunegate_cache.stores.store import ObjectStore, StoreUnavailableError

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
    done = subprocess.run(
        [sys.executable, "-c", WRITE_ON_A_FULL_DISK, str(tmp_path)],
        capture_output=True,
        text=True,
        check=True,
    )
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


def test_other_users_may_read_what_the_umask_lets_them(tmp_path: Path) -> None:
    before = os.umask(0o022)
    try:
        FileStore(tmp_path).write("a/1", b"x")
    finally:
        os.umask(before)
    assert (tmp_path / "a" / "1").stat().st_mode & 0o777 == 0o644


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
