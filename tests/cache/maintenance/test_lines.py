from __future__ import annotations

import hashlib
from pathlib import Path

import pytest

from tunegate_cache.maintenance.lines import (
    MAX_LINES_BYTES,
    LinesTooLongError,
    read_lines,
    write_lines,
)
from tunegate_cache.stores.files import FileStore


def test_lines_come_back_in_the_order_of_their_names(tmp_path: Path) -> None:
    store = FileStore(tmp_path)
    names = [write_lines(store, f"ms1/z/a/{n}", b"%d\n" % n) for n in (1, 2)]
    assert list(read_lines(store, names[::-1]).items()) == [(names[1], b"2\n"), (names[0], b"1\n")]


def test_the_same_lines_are_one_object(tmp_path: Path) -> None:
    store = FileStore(tmp_path)
    assert write_lines(store, "ms1/z/a/x", b"x\n") == write_lines(store, "ms1/z/a/x", b"x\n")
    assert len(store.names("ms1/z/a/")) == 1


def test_more_than_an_object_can_have_is_refused(tmp_path: Path) -> None:
    with pytest.raises(LinesTooLongError, match="at most"):
        write_lines(FileStore(tmp_path), "ms1/z/a/x", b"x" * (MAX_LINES_BYTES + 1))


def test_what_is_gone_too_large_or_not_what_its_name_says_is_left_out(tmp_path: Path) -> None:
    store = FileStore(tmp_path)
    large = b"y" * (MAX_LINES_BYTES + 1)
    lies = {
        f"ms1/z/a/1-{'0' * 64}.jsonl": b"not its digest\n",
        f"ms1/z/a/2-{hashlib.sha256(large).hexdigest()}.jsonl": large,
        "ms1/z/a/notes.txt": b"anything",
    }
    for name, body in lies.items():
        store.write(name, body)
    true = write_lines(store, "ms1/z/a/3", b"true\n")
    assert read_lines(store, [*lies, "ms1/z/a/gone.jsonl", true]) == {true: b"true\n"}
