from __future__ import annotations

from pathlib import Path

import pytest

from tests.cache.format.test_signing import KEYS
from tests.support.compacted_place import MAIN, NOBODY, Place
from tests.support.tuning_records import TARGET, make_record
from tunegate_cache.format.head import head_digest
from tunegate_cache.format.names import group_of
from tunegate_cache.protocol.group_state import current_head, groups, listing


@pytest.fixture
def place(tmp_path: Path) -> Place:
    place = Place(tmp_path)
    place.publish(make_record())
    return place


def test_objects_are_listed_by_kind(place: Place) -> None:
    place.compact()
    place.publish(make_record("later"))
    found = listing(place.store, MAIN)
    counted = (found.segments, found.packs, found.indexes, found.archives)
    assert [len(names) for names in counted] == [2, 1, 1, 1]
    assert all(name.group == MAIN for name in found.segments)


def test_what_is_of_another_group_or_no_object_of_ours_is_not_listed(place: Place) -> None:
    place.store.write(f"{MAIN.prefix}notes.txt", b"")
    (segment,) = listing(place.store, MAIN).segments
    other = group_of("team", TARGET)
    place.store.write(segment.name.replace("/main/", "/team/"), b"")
    assert listing(place.store, MAIN).segments == (segment,)
    assert len(listing(place.store, other).segments) == 1
    assert groups(place.store) == (MAIN, other)
    assert groups(place.store, "team") == (other,)
    assert groups(place.store, "absent") == ()


def test_a_group_of_which_only_its_head_is_left_is_a_group(place: Place) -> None:
    place.compact()
    head = place.store.read_pointer(MAIN.head)
    store = Place(Path("/nowhere")).store
    store.write(MAIN.head, head.body)
    assert groups(store) == (MAIN,)


def test_without_a_compaction_there_is_no_head(place: Place) -> None:
    found = current_head(place.store, MAIN, NOBODY)
    assert (found.head, found.tag, found.problem) == (None, None, "")


def test_the_head_comes_with_its_tag_and_its_digest(place: Place) -> None:
    place.compact()
    pointer = place.store.read_pointer(MAIN.head)
    found = current_head(place.store, MAIN, NOBODY)
    assert found.head is not None
    assert found.head.version == 1
    assert (found.tag, found.digest) == (pointer.tag, head_digest(pointer.body))


def test_a_head_that_is_not_trusted_can_be_replaced_and_one_of_a_later_version_must_not(
    place: Place,
) -> None:
    place.compact()
    refused = current_head(place.store, MAIN, KEYS)
    assert (refused.head, refused.is_later) == (None, False)
    assert refused.tag is not None
    assert "trusted key" in refused.problem
    body = place.store.read_pointer(MAIN.head).body.replace(b'"v":1', b'"v":9', 1)
    place.store.move_pointer(MAIN.head, body, refused.tag)
    later = current_head(place.store, MAIN, NOBODY)
    assert (later.head, later.is_later) == (None, True)
