from __future__ import annotations

from collections.abc import Sequence

import msgspec
import pytest

from tests.support.tuning_tasks import DEVICE, exact, make_record, make_task, transfer
from tunegate.artifacts.changes import Side
from tunegate.artifacts.plans import PlannedTask
from tunegate.artifacts.tasks import Claims, ResolvedTask
from tunegate.tune.prior_results import PriorResults, schedule_of
from tunegate_cache.format.records import ExactHit, Lookup, Miss

TRUSTED = make_record()
CLAIM = msgspec.structs.replace(make_record(milliseconds=0.5), decisions=((3, (8,)),))
CLAIMS = Claims((CLAIM,), is_searched=True)


def known(
    lookup: Lookup, claims: Claims | None = CLAIMS, sides: Sequence[Side] = ("head",)
) -> PriorResults:
    planned = PlannedTask(
        resolved=ResolvedTask(make_task(sides=sides), lookup, claims), trials=0, gain_ms=0.0
    )
    return PriorResults(planned, DEVICE, TRUSTED.toolchain)


def test_a_trusted_answer_is_served_unless_there_is_a_claim_to_measure() -> None:
    assert known(exact(), None).is_served
    assert not known(exact()).is_served
    assert known(exact()).is_measured_only
    assert not known(Miss("absent"), None).is_measured_only


def test_a_claim_is_measured_beside_the_best_that_is_trusted() -> None:
    second = msgspec.structs.replace(TRUSTED, decisions=((3, (9,)),))
    before = known(ExactHit((TRUSTED, second)))
    assert before.seeds() == (("exact", schedule_of(TRUSTED)), ("own-zone", schedule_of(CLAIM)))
    assert before.incumbent == schedule_of(TRUSTED)


def test_without_a_claim_there_is_nothing_to_beat() -> None:
    assert known(exact(), None).incumbent is None
    assert known(Miss("absent")).incumbent is None


def test_what_an_earlier_push_searched_to_its_end_needs_no_neighbours() -> None:
    assert known(transfer()).seeds() == (("own-zone", schedule_of(CLAIM)),)
    assert known(transfer()).is_measured_only


def test_where_a_search_goes_on_neighbours_are_tried_as_well() -> None:
    before = known(transfer(), sides=("base",))
    assert [origin for origin, _ in before.seeds()] == ["transfer", "own-zone"]
    assert not before.is_measured_only


def test_neighbours_of_the_own_zone_are_transferred_from() -> None:
    near = transfer()
    assert known(Miss("absent"), Claims(near.records, is_searched=False)).seeds() == (
        ("transfer", schedule_of(near.records[0])),
    )


def test_what_is_not_run_is_what_trusted_zones_answer() -> None:
    assert known(exact()).outcome().records == (TRUSTED,)
    assert known(exact()).outcome().source == "exact"
    assert known(Miss("absent")).outcome().records == ()


@pytest.mark.parametrize("lookup", [exact(), transfer(), Miss("absent")])
def test_nothing_is_run_for_what_both_sides_have(lookup: Lookup) -> None:
    task = make_task(sides=("base", "head"))
    planned = PlannedTask(
        resolved=ResolvedTask(task, lookup, skipped="shared"), trials=0, gain_ms=0.0
    )
    elsewhere = msgspec.structs.replace(DEVICE, name="another")
    for device in (DEVICE, elsewhere):
        before = PriorResults(planned, device, TRUSTED.toolchain)
        assert before.is_served
        assert before.outcome().trials == 0
        assert before.outcome().stopped == ("exact" if lookup == exact() else "shared")
