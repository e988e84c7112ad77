from __future__ import annotations

import hashlib
from pathlib import Path

import pytest

from tests.cache.format.test_segment import KEYS
from tests.support.compacted_place import MAIN, NOBODY, Place, numbered
from tests.support.tuning_records import make_record
from tunegate_cache.maintenance.consistency import Flaw, broken_segments, flaws
from tunegate_cache.maintenance.history import append_history, prefix, recent_history
from tunegate_cache.maintenance.lines import (
    MAX_LINES_BYTES,
    LinesTooLongError,
    read_lines,
    write_lines,
)
from tunegate_cache.stores.files import FileStore
from tunegate_cache.stores.s3 import S3Store


@pytest.fixture
def place(tmp_path: Path) -> Place:
    """A cache with two segments, gathered by a compaction, and one beside them."""
    place = Place(tmp_path)
    for record in numbered(2):
        place.publish(record)
    place.compact()
    place.publish(make_record("later"))
    return place


def spoil(place: Place, kind: str, body: bytes | None = b"garbage") -> str:
    """The first object of this kind gets another body, or is deleted."""
    name = next(name for name in place.store.names("") if f"/{kind}/" in name)
    place.store.delete(name)
    if body is not None:
        place.store.write(name, body)
    return name


def found(place: Place) -> list[Flaw]:
    return list(flaws(place.store, MAIN, NOBODY))


def kinds(place: Place) -> list[str]:
    return [flaw.kind for flaw in found(place)]


def test_a_sound_cache_has_no_flaw(place: Place) -> None:
    assert found(place) == []
    place.collect()
    assert found(place) == []


@pytest.mark.parametrize("body", [b"garbage", None])
@pytest.mark.parametrize("kind", ["pack", "idx"])
def test_a_snapshot_that_cannot_be_read_is_told(
    place: Place, kind: str, body: bytes | None
) -> None:
    spoil(place, kind, body)
    assert kinds(place) == ["snapshot"]


@pytest.mark.parametrize("body", [b"garbage", None])
def test_segments_that_only_a_broken_archive_held_are_a_broken_promise(
    place: Place, body: bytes | None
) -> None:
    spoil(place, "cold", body)
    assert kinds(place) == ["archive", "unarchived", "unarchived"]


def test_a_broken_segment_is_named(place: Place) -> None:
    name = spoil(place, "seg")
    (flaw,) = found(place)
    assert (flaw.kind, flaw.name) == ("segment", name)
    assert list(broken_segments([flaw])) == [name]


def test_a_segment_that_nobody_trusted_has_signed_is_not_broken(place: Place) -> None:
    unsigned = list(flaws(place.store, MAIN, KEYS))
    assert [flaw.kind for flaw in unsigned] == ["head", "segment", "segment", "segment"]
    assert list(broken_segments(unsigned)) == []


def test_an_archive_that_no_head_refers_to_is_told(place: Place) -> None:
    before = place.store.read_pointer(MAIN.head)
    place.compact()
    pointer = place.store.read_pointer(MAIN.head)
    place.store.move_pointer(MAIN.head, before.body, pointer.tag)
    assert kinds(place) == ["orphan"]


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
