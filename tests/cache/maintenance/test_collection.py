from __future__ import annotations

from pathlib import Path

import pytest

from tests.cache.format.test_signing import KEYS
from tests.support.compacted_place import MAIN, Place, numbered
from tests.support.tuning_records import make_record
from tunegate_cache.maintenance.collection import collect
from tunegate_cache.protocol.group_state import listing


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place(tmp_path)


def test_a_collection_without_compaction_deletes_nothing(place: Place) -> None:
    place.publish(make_record())
    assert place.collect().segments == 0
    assert place.best() == make_record()


def test_a_dry_run_only_counts(place: Place) -> None:
    place.publish(make_record())
    place.compact()
    assert place.collect(dry_run=True).segments == 1
    assert place.objects("seg") == 1


def test_snapshots_stay_for_pins_and_go_when_their_day_is_over(place: Place) -> None:
    for record in numbered(3):
        place.publish(record)
        place.compact()
        place.seconds += 40 * 24 * 3600
    assert place.objects("idx") == 3
    place.publish(make_record("last"))
    place.compact()
    assert place.collect(grace_seconds=0).others == 6
    assert place.objects("idx") == place.objects("pack") == 1
    assert [place.best(f"w{n}") for n in range(3)] == numbered(3)


def test_a_segment_whose_archive_is_broken_stays_and_the_archive_is_told(place: Place) -> None:
    place.publish(make_record())
    place.compact()
    (archive,) = listing(place.store, MAIN).archives
    place.store.delete(archive)
    found = place.collect()
    assert (found.segments, found.others) == (0, 0)
    assert "it is missing" in found.problems[0]
    assert place.objects("seg") == 1


def test_a_segment_with_another_content_than_was_archived_stays(place: Place) -> None:
    place.publish(make_record("a"))
    place.compact()
    place.publish(make_record("b"))
    assert place.collect().segments == 1
    assert place.objects("seg") == 1


def test_a_head_that_is_not_trusted_deletes_nothing(place: Place) -> None:
    place.publish(make_record())
    place.compact()
    found = collect(place.store, MAIN, keys=KEYS, now=place.seconds, grace_seconds=0)
    assert (found.segments, found.others) == (0, 0)
    assert "trusted key" in found.problems[0]
    assert place.objects("seg") == 1


def test_what_is_unreferenced_goes_when_its_grace_is_over(place: Place) -> None:
    place.publish(make_record("a"))
    place.compact()
    place.seconds += 40 * 24 * 3600
    place.publish(make_record("b"))
    place.compact()
    place.seconds += 100
    assert place.collect(grace_seconds=101).others == 0
    assert place.collect(grace_seconds=100).others == 2
    assert place.objects("idx") == 1
