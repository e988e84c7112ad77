from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.compacted_place import MAIN, NOBODY, Place, numbered
from tunegate_cache.format.head import Snapshot
from tunegate_cache.format.pack import CorruptBlockError
from tunegate_cache.format.snapshot_index import CorruptIndexError
from tunegate_cache.protocol.group_state import current_head
from tunegate_cache.protocol.snapshot_records import read_index, snapshot_records


@pytest.fixture
def place(tmp_path: Path) -> Place:
    place = Place(tmp_path)
    place.publish(*numbered(3))
    place.compact()
    return place


def snapshot_of(place: Place) -> Snapshot:
    head = current_head(place.store, MAIN, NOBODY).head
    assert head is not None
    return head.snapshot


def test_every_record_of_a_snapshot_is_read(place: Place) -> None:
    found = [each.record for each in snapshot_records(place.store, MAIN, snapshot_of(place))]
    assert sorted(found, key=lambda r: r.key) == sorted(numbered(3), key=lambda r: r.key)


def test_a_pack_that_is_missing_or_damaged_is_a_corrupt_block(place: Place) -> None:
    snapshot = snapshot_of(place)
    pack = MAIN.content("pack", snapshot.packs[0])
    place.store.delete(pack)
    with pytest.raises(CorruptBlockError, match="a pack is missing"):
        list(snapshot_records(place.store, MAIN, snapshot))
    place.store.write(pack, b"garbage")
    with pytest.raises(CorruptBlockError, match="not what the index says"):
        list(snapshot_records(place.store, MAIN, snapshot))


def test_an_index_that_is_missing_is_a_corrupt_one(place: Place) -> None:
    with pytest.raises(CorruptIndexError, match="it is missing"):
        read_index(place.store, MAIN, "0" * 64)
