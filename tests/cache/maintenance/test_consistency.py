from __future__ import annotations

from pathlib import Path

import pytest

from tests.cache.format.test_signing import KEYS
from tests.support.compacted_place import MAIN, NOBODY, Place, numbered
from tests.support.tuning_records import make_record
from tunegate_cache.maintenance.consistency import Flaw, broken_segments, flaws


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
