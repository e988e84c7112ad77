"""What an earlier run has confirmed is an answer; what it has only
measured quickly is a start."""

from __future__ import annotations

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from tests.support.tuning_tasks import key_of, make_record, transfer
from tunegate.tune.claims import as_resumed, is_resumed, is_unfinished
from tunegate_cache.format.records import (
    CONFIRMED_REPEATS,
    DeviceFingerprint,
    ExactHit,
    Miss,
    TransferHit,
)

KEY = key_of("conv2d")
OTHER = DeviceFingerprint(name="another", kind="cpu", units=2, memory_bytes=1)
DEFAULT = msgspec.structs.replace(make_record(times=1), template="", decisions=())


@given(st.lists(st.integers(1, 2 * CONFIRMED_REPEATS), min_size=1, max_size=8))
def test_one_careful_measurement_is_enough(times: list[int]) -> None:
    lookup = ExactHit(tuple(make_record(times=count) for count in times))
    assert is_unfinished(lookup) == (max(times) < CONFIRMED_REPEATS)


def test_a_task_too_small_to_search_is_finished_by_its_default_schedule() -> None:
    assert not is_unfinished(ExactHit((DEFAULT,)))
    assert is_unfinished(ExactHit((make_record(times=3), DEFAULT)))


def test_a_default_schedule_that_was_measured_with_care_beside_others_is_an_answer() -> None:
    confirmed = msgspec.structs.replace(DEFAULT, run_nanoseconds=(5,) * CONFIRMED_REPEATS)
    assert not is_unfinished(ExactHit((confirmed, make_record(times=3))))


def test_what_another_device_has_measured_with_care_is_no_answer_for_this_one() -> None:
    theirs = msgspec.structs.replace(make_record(), device=OTHER)
    assert is_unfinished(ExactHit((make_record(times=3), theirs)))
    assert not is_unfinished(ExactHit((theirs, make_record(times=3))))


def test_what_takes_seconds_is_its_own_average() -> None:
    assert not is_unfinished(ExactHit((make_record(milliseconds=3000, times=1),)))


def test_its_own_records_are_where_the_search_goes_on_and_what_failed_is_not_tried_again() -> None:
    quick, failed = make_record(times=3), make_record("failed")
    found = as_resumed(KEY, ExactHit((quick,), (failed,)))
    assert found == TransferHit((KEY,), 0.0, (quick,), (failed,))
    assert is_resumed(KEY, found)
    assert not is_resumed(KEY, transfer())


def test_every_other_answer_stays_as_it_is() -> None:
    for lookup in (Miss("absent"), transfer(), ExactHit((make_record(),))):
        assert as_resumed(KEY, lookup) is lookup
