from __future__ import annotations

from pathlib import Path

import pytest

from tests.cache.format.test_segment import OURS
from tests.support.compacted_place import MAIN, NOBODY, Place, numbered
from tests.support.tuning_records import TARGET, make_record
from tunegate_cache.format.names import group_of
from tunegate_cache.format.segment import signature_of
from tunegate_cache.maintenance.copying import Copied, pull, push
from tunegate_cache.protocol.group_state import listing

TEAM = group_of("team", TARGET)


@pytest.fixture
def source(tmp_path: Path) -> Place:
    """A cache with two records in an archive, and one in a segment of its own."""
    place = Place(tmp_path / "source")
    for record in numbered(2):
        place.publish(record)
    place.compact()
    place.collect()
    place.publish(make_record("later"))
    return place


@pytest.fixture
def destination(tmp_path: Path) -> Place:
    return Place(tmp_path / "destination")


def test_a_pulled_group_answers_as_its_source_does(source: Place, destination: Place) -> None:
    copied = pull(source.store, destination.store, MAIN, NOBODY)
    assert copied.problems == ()
    assert copied.objects == 4
    assert copied.size_bytes == sum(
        len(destination.store.read(name))
        for name in destination.store.names("")
        if "HEAD" not in name
    )
    for name in ("w0", "w1", "later"):
        assert destination.best(name) == make_record(name)


def test_pulling_again_brings_what_is_new_and_moves_the_head(
    source: Place, destination: Place
) -> None:
    pull(source.store, destination.store, MAIN, NOBODY)
    source.publish(make_record("newest"))
    source.compact()
    pull(source.store, destination.store, MAIN, NOBODY)
    assert destination.best("newest") == make_record("newest")
    assert (
        destination.store.read_pointer(MAIN.head).body == source.store.read_pointer(MAIN.head).body
    )


def test_a_group_that_was_never_compacted_has_no_head_to_bring(
    tmp_path: Path, destination: Place
) -> None:
    young = Place(tmp_path / "young")
    young.publish(make_record())
    assert pull(young.store, destination.store, MAIN, NOBODY).objects == 1
    assert destination.store.names("") == young.store.names("")


def test_what_the_head_refers_to_and_is_missing_is_told(source: Place, destination: Place) -> None:
    pack = listing(source.store, MAIN).packs[0]
    source.store.delete(pack)
    copied = pull(source.store, destination.store, MAIN, NOBODY)
    assert copied.problems == (f"{pack} is missing; run tunegate cache fsck",)
    assert copied.objects == 3


def test_pushed_segments_are_signed_for_the_zone_that_they_go_to(
    source: Place, destination: Place
) -> None:
    copied = push(source.store, destination.store, from_zone="main", zone="team", signer=OURS)
    assert (copied.objects, copied.records, copied.problems) == (3, 3, ())
    segments = listing(destination.store, TEAM).segments
    assert len(segments) == 3
    for name in segments:
        signature = signature_of(destination.store.read(name.name))
        assert signature == OURS.sign(name.name, name.digest)
    unsigned = Place(Path("/nowhere")).store
    push(destination.store, unsigned, from_zone="team", zone="main", signer=None)
    assert {signature_of(unsigned.read(name)) for name in unsigned.names("")} == {None}


def test_a_damaged_segment_is_told_and_stays_behind(source: Place, destination: Place) -> None:
    (name,) = listing(source.store, MAIN).segments
    source.store.delete(name.name)
    source.store.write(name.name, b"garbage")
    copied = push(source.store, destination.store, from_zone="main", zone="team", signer=None)
    assert copied.objects == 2
    assert name.name in copied.problems[0]


def test_copies_add_up() -> None:
    both = Copied(objects=1, problems=("a",)).plus(
        Copied(objects=2, records=3, size_bytes=4, problems=("b",))
    )
    assert both == Copied(objects=3, records=3, size_bytes=4, problems=("a", "b"))
