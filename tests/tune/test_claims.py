import msgspec
import pytest

from tests.support.tuning_tasks import DEVICE, exact, make_record, make_task, transfer
from tunegate.artifacts.tasks import Claims, ResolvedTask
from tunegate.tune.claims import MAX_CLAIMS, claims_beside
from tunegate_cache.format import records

TRUSTED = make_record(milliseconds=1.0)


def other(milliseconds: float, number: int = 8, times: int = 5) -> records.TuningRecord:
    """Another schedule of the same task."""
    record = make_record(milliseconds=milliseconds, times=times)
    return msgspec.structs.replace(record, decisions=((3, (number,)),))


def claimed(
    trusted: records.Lookup, *own: records.TuningRecord
) -> tuple[records.TuningRecord, ...]:
    claims = claims_beside(trusted, records.ExactHit(own))
    return () if claims is None else claims.records


def test_what_promises_more_than_the_trusted_record_is_worth_measuring() -> None:
    assert claimed(records.ExactHit((TRUSTED,)), other(0.8)) == (other(0.8),)
    assert claimed(records.ExactHit((TRUSTED,)), other(1.2)) == ()


def test_another_time_of_a_trusted_schedule_is_nothing_new() -> None:
    again = make_record(milliseconds=0.5)
    assert claimed(records.ExactHit((TRUSTED,)), again) == ()


def test_times_of_another_device_promise_neither_more_nor_less() -> None:
    elsewhere = msgspec.structs.replace(DEVICE, name="another")
    trusted = msgspec.structs.replace(TRUSTED, device=elsewhere)
    assert claimed(records.ExactHit((trusted,)), other(5.0)) == (other(5.0),)


def test_a_few_of_many_claims_are_enough() -> None:
    own = [other(0.1 * number, number) for number in range(1, 9)]
    assert claimed(records.Miss("absent"), *own) == tuple(own[:MAX_CLAIMS])


def test_the_default_schedule_needs_no_claim() -> None:
    default = msgspec.structs.replace(other(0.1), template="", decisions=())
    assert claims_beside(records.Miss("absent"), records.ExactHit((default,))) is None


def test_neighbours_of_the_own_zone_stand_in_only_where_trusted_zones_have_none() -> None:
    own = transfer()
    assert claims_beside(records.Miss("absent"), own) == Claims(own.records, is_searched=False)
    assert claims_beside(transfer(), own) is None
    assert claims_beside(exact(), own) is None


@pytest.mark.parametrize(("times", "is_searched"), [(5, True), (3, False)])
def test_a_search_that_was_broken_off_is_not_ended(times: int, is_searched: bool) -> None:
    claims = claims_beside(records.Miss("absent"), records.ExactHit((other(1.0, times=times),)))
    assert claims is not None
    assert claims.is_searched == is_searched


HEAD_ONLY, OF_BOTH, BASE_ONLY = (
    make_task(sides=sides) for sides in (("head",), ("base", "head"), ("base",))
)
SEARCHED = Claims((other(0.5),), is_searched=True)


def test_an_own_search_that_was_ended_is_enough_for_what_only_the_head_has() -> None:
    assert ResolvedTask(HEAD_ONLY, records.Miss("absent"), SEARCHED).is_settled
    broken_off = msgspec.structs.replace(SEARCHED, is_searched=False)
    assert not ResolvedTask(HEAD_ONLY, records.Miss("absent"), broken_off).is_settled


@pytest.mark.parametrize("lookup", [records.Miss("absent"), transfer()], ids=["miss", "transfer"])
def test_what_the_base_uses_is_searched_whatever_is_claimed(lookup: records.Lookup) -> None:
    for task in (OF_BOTH, BASE_ONLY):
        assert not ResolvedTask(task, lookup, SEARCHED).is_settled
        assert ResolvedTask(task, exact(), SEARCHED).is_settled


def test_no_claims_are_none() -> None:
    assert claims_beside(records.Miss("absent"), None) is None
    resumed = records.TransferHit((records.WorkloadKey("1" * 64, "2" * 64),), 0.0, (TRUSTED,))
    assert claims_beside(resumed, None) is None
