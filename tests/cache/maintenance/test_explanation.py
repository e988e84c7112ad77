from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest

from tests.support.compacted_place import NOBODY, Place
from tests.support.tuning_records import hexdigest, make_key, make_record, make_shape
from tunegate_cache.format.records import WorkloadKey, WorkloadShape
from tunegate_cache.maintenance.explanation import Explanation, explain


@pytest.fixture(params=["segments", "a snapshot"])
def place(tmp_path: Path, request: pytest.FixtureRequest) -> Place:
    """A cache with one record of `w` and a failure of `f`, before or after a compaction."""
    place = Place(tmp_path)
    place.publish(make_record(), make_record("f", status="compile", run_nanoseconds=()))
    if request.param == "a snapshot":
        place.compact()
        place.collect()
    return place


def explained(
    place: Place,
    key: WorkloadKey,
    shape: WorkloadShape | None = None,
    *,
    zones: Sequence[str] = ("main",),
    own: Sequence[str] = (),
) -> Explanation:
    return explain(place.store, zones, key, shape or make_shape("another"), NOBODY, own=own)


def test_what_is_there_is_found(place: Place) -> None:
    found = explained(place, make_key())
    assert (found.differs, found.detail) == ("nothing", "there are records in zone main")


def test_a_task_of_which_only_failures_are_known_says_so(place: Place) -> None:
    assert explained(place, make_key("f")).differs == "status"


def test_records_in_a_zone_that_is_not_read_are_named_with_it(place: Place) -> None:
    found = explained(place, make_key(), zones=("team", "else"))
    assert found.differs == "zone"
    assert found.detail == "the records are in zone main; this run reads team, else"


def test_claims_of_the_own_zone_are_not_trusted(place: Place) -> None:
    found = explained(place, make_key(), zones=("team",), own=("main",))
    assert found.differs == "trust"
    assert explained(place, make_key("f"), zones=("team",), own=("main",)).differs == "zone"


def test_records_for_another_target_are_named_with_it(place: Place) -> None:
    found = explained(place, make_key(target=hexdigest("another target")))
    assert found.differs == "target"
    assert hexdigest("target")[:16] in found.detail


def test_the_nearest_shape_is_named_with_the_extents_that_differ(place: Place) -> None:
    found = explained(place, make_key("new"), make_shape(extents=(64, 32)))
    assert found.differs == "extents"
    assert found.neighbour is not None
    assert (found.neighbour.workload, found.neighbour.extents) == (hexdigest("w"), (64, 64))
    assert "32" in found.detail


def test_an_operation_that_was_never_recorded_has_no_neighbour(place: Place) -> None:
    found = explained(place, make_key("new"))
    assert (found.differs, found.neighbour) == ("skeleton", None)
