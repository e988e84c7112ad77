from __future__ import annotations

import random

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from tests.support.tuning_records import hexdigest, make_record, make_shape
from tunegate_cache.format.record_codec import encode_record
from tunegate_cache.format.records import TuningRecord
from tunegate_cache.format.stored_record import StoredRecord
from tunegate_cache.protocol.hot_records import (
    BEST_OF_EACH_DEVICE,
    FAILURES,
    HotRecords,
    shape_to_teach,
)


def stored(record: TuningRecord) -> StoredRecord:
    return StoredRecord(record, encode_record(record))


def candidate(number: int, milliseconds: float | None = None, **changes: object) -> StoredRecord:
    """One of the candidates of a workload; it failed where it has no time."""
    times = () if milliseconds is None else (round(milliseconds * 1e6),) * 5
    usual: dict[str, object] = {
        "decisions": ((3, (number, 1)),),
        "run_nanoseconds": times,
        "status": "ok" if times else "compile",
    }
    return stored(make_record("w", **(usual | changes)))


def kept(records: list[StoredRecord]) -> list[StoredRecord]:
    hot = HotRecords()
    hot.add(records)
    ((_, found),) = hot.workloads()
    return found


def test_the_fastest_of_each_kind_of_device_are_kept_fastest_first() -> None:
    here = [candidate(n, 1.0 + n) for n in range(20)]
    other = msgspec.structs.replace(here[0].record.device, name="another")
    there = [candidate(n, 100.0 + n, device=other) for n in range(3)]
    assert kept([*there, *reversed(here)]) == [*here[:BEST_OF_EACH_DEVICE], *there]


def test_the_latest_failures_are_kept_after_what_works() -> None:
    failures = [candidate(n, measured_at=n) for n in range(FAILURES + 5)]
    works = candidate(999, 1.0)
    assert kept([*failures, works]) == [works, *failures[:4:-1]]


def test_the_default_schedule_is_kept_however_slow_it_is() -> None:
    default = candidate(0, 999.0, template="")
    assert default in kept([*(candidate(n, 1.0 + n) for n in range(20)), default])


def test_the_fastest_confirmed_one_is_kept_behind_any_number_of_brief_looks() -> None:
    brief = [candidate(n, run_nanoseconds=(1000 + n,), status="ok") for n in range(400)]
    confirmed = [candidate(500 + n, 9.0 + n) for n in range(3)]
    assert kept([*confirmed, *brief]) == [*brief[:BEST_OF_EACH_DEVICE], confirmed[0]]


def test_of_one_second_a_failure_counts_before_what_ran_and_then_what_was_measured_longer() -> None:
    brief = candidate(1, run_nanoseconds=(9_999_999,), status="ok")
    confirmed, failed = candidate(1, 1.0), candidate(1)
    assert kept([brief, confirmed]) == kept([confirmed, brief]) == [confirmed]
    assert kept([failed, confirmed]) == kept([confirmed, failed]) == [failed]


def test_of_one_candidate_the_latest_measurement_counts() -> None:
    early, late = candidate(1, 1.0, measured_at=1), candidate(1, 9.0, measured_at=2)
    assert kept([early, late]) == kept([late, early]) == [late]


@given(st.randoms(use_true_random=False))
def test_the_order_in_which_records_come_does_not_matter(rng: random.Random) -> None:
    records = [candidate(n, 1.0 + n % 7) for n in range(30)]
    records += [candidate(100 + n, measured_at=n) for n in range(40)]
    shuffled = rng.sample(records, len(records))
    assert kept(shuffled) == kept(records)


def test_what_is_cut_on_the_way_is_what_would_be_cut_in_the_end() -> None:
    many = [candidate(n, 1000.0 - n) for n in range(400)]
    assert kept(many) == many[: -BEST_OF_EACH_DEVICE - 1 : -1]


def test_workloads_come_in_their_order_and_everything_is_counted() -> None:
    hot = HotRecords()
    hot.add([stored(make_record(name)) for name in "cab"])
    names = [workload for workload, _ in hot.workloads()]
    assert names == sorted(hexdigest(name) for name in "abc")
    assert hot.added == 3


def test_a_shape_is_taught_by_a_schedule_that_works() -> None:
    other = make_shape("other")
    assert shape_to_teach([candidate(1), candidate(2, 1.0, shape=other)]) == other
    assert shape_to_teach([candidate(1), candidate(2, 1.0, template="")]) is None
