from __future__ import annotations

import hashlib
from pathlib import Path

import pytest

from tunegate_cache.maintenance.history import append_history, prefix, recent_history
from tunegate_cache.maintenance.lines import MAX_LINES_BYTES, LinesTooLongError
from tunegate_cache.stores.files import FileStore
from tunegate_cache.stores.s3 import S3Store

ZONE = "main"


def test_the_latest_runs_come_back_oldest_first(bucket: S3Store) -> None:
    for at in (3, 1, 2):
        append_history(bucket, ZONE, b"run %d\n" % at, milliseconds=at)
    assert [*recent_history(bucket, ZONE, 2).values()] == [b"run 2\n", b"run 3\n"]
    assert recent_history(bucket, "rel", 2) == {}


def test_the_same_run_is_remembered_once(tmp_path: Path) -> None:
    store = FileStore(tmp_path)
    name = append_history(store, ZONE, b"x\n", milliseconds=1)
    assert append_history(store, ZONE, b"x\n", milliseconds=1) == name
    assert recent_history(store, ZONE, 10) == {name: b"x\n"}


def test_more_than_a_run_can_have_is_refused(tmp_path: Path) -> None:
    with pytest.raises(LinesTooLongError, match="at most"):
        append_history(FileStore(tmp_path), ZONE, b"x" * (MAX_LINES_BYTES + 1), milliseconds=1)


def test_what_is_not_what_its_name_says_is_left_out(tmp_path: Path) -> None:
    store = FileStore(tmp_path)
    large = b"y" * (MAX_LINES_BYTES + 1)
    lies = {
        f"{prefix(ZONE)}{1:013d}-{'0' * 64}.jsonl": b"not its digest\n",
        f"{prefix(ZONE)}{2:013d}-{hashlib.sha256(large).hexdigest()}.jsonl": large,
        f"{prefix(ZONE)}notes.txt": b"anything",
    }
    for name, body in lies.items():
        store.write(name, body)
    append_history(store, ZONE, b"true\n", milliseconds=3)
    assert [*recent_history(store, ZONE, 10).values()] == [b"true\n"]
