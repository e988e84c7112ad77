"""Records that answer for a task, and their order."""

import random

from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from tests.support.present import present
from tests.support.tuning_records import hexdigest, make_key, make_record, make_shape
from tunegate_cache.format.record_codec import encode_record
from tunegate_cache.format.records import (
    CONFIRMED_REPEATS,
    DeviceFingerprint,
    ExactHit,
    StoredRecord,
    Toolchain,
    TransferHit,
    TuningRecord,
)
from tunegate_cache.protocol import hot_records
from tunegate_cache.protocol.record_index import RecordIndex

OURS = DeviceFingerprint(name="ours", kind="cpu", units=2, memory_bytes=8)
THEIRS = DeviceFingerprint(name="theirs", kind="cpu", units=2, memory_bytes=8)
RECORDS = st.lists(
    st.builds(
        lambda workload, tile, ns, at, ok, device: make_record(
            workload,
            decisions=((3, (tile,)),),
            run_nanoseconds=(ns,) if ok else (),
            status="ok" if ok else "timeout",
            measured_at=at,
            device=device,
        ),
        st.sampled_from(["w", "near", "far"]),
        st.integers(1, 4),
        st.integers(1, 9),
        st.integers(0, 3),
        st.booleans(),
        st.sampled_from([OURS, THEIRS]),
    ),
    max_size=12,
)


def exact(*records: TuningRecord) -> ExactHit | None:
    index = RecordIndex(OURS)
    index.add(records)
    return index.exact(make_key())


def transfer(*records: TuningRecord) -> TransferHit | None:
    index = RecordIndex()
    index.add(records)
    return index.transfer(make_key("new"), make_shape(extents=(64, 64)))


def candidate(tile: int, nanoseconds: int, **changes: object) -> TuningRecord:
    fields: dict[str, object] = {
        "decisions": ((3, (tile,)),),
        "run_nanoseconds": (nanoseconds,),
        **changes,
    }
    return make_record("w", **fields)


def test_the_fastest_comes_first_and_eight_are_enough() -> None:
    found = present(exact(*(candidate(tile, 100 - tile) for tile in range(20))))
    assert [record.run_nanoseconds[0] for record in found.records] == list(range(81, 89))


def test_a_brief_look_must_be_faster_than_a_careful_measurement_by_more_than_luck() -> None:
    confirmed = candidate(1, 0, run_nanoseconds=(1000,) * CONFIRMED_REPEATS)
    lucky, better = candidate(2, 950), candidate(3, 900)
    assert exact(lucky, confirmed) == ExactHit((confirmed, lucky))
    assert exact(confirmed, better) == ExactHit((better, confirmed))


def test_a_confirmed_one_stays_among_the_eight_behind_any_number_of_brief_looks() -> None:
    brief = [candidate(tile, 100 + tile) for tile in range(20)]
    slow = candidate(30, 0, run_nanoseconds=(9000,) * CONFIRMED_REPEATS)
    slower = candidate(31, 0, run_nanoseconds=(9900,) * CONFIRMED_REPEATS)
    assert present(exact(*brief, slower, slow)).records == (*brief[:7], slow)


def test_a_confirmed_one_of_another_device_takes_no_place() -> None:
    brief = [candidate(tile, 100 + tile, device=OURS) for tile in range(20)]
    theirs = candidate(30, 0, run_nanoseconds=(50,) * CONFIRMED_REPEATS, device=THEIRS)
    assert present(exact(*brief, theirs)).records == tuple(brief[:8])


def test_of_two_measurements_of_one_second_the_one_that_confirms_counts() -> None:
    brief = candidate(1, 9999, measured_at=5)
    confirmed = candidate(1, 0, run_nanoseconds=(900,) * CONFIRMED_REPEATS, measured_at=5)
    assert exact(brief, confirmed) == exact(confirmed, brief) == ExactHit((confirmed,))


def test_results_of_our_own_device_come_before_faster_ones_of_others() -> None:
    slow, fast = candidate(1, 900, device=OURS), candidate(2, 100, device=THEIRS)
    assert exact(fast, slow) == ExactHit((slow, fast))


def test_of_two_measurements_of_a_candidate_the_later_counts_if_possible_on_our_device() -> None:
    ours = candidate(1, 900, device=OURS, measured_at=1)
    older = candidate(1, 800, device=OURS, measured_at=0)
    assert exact(candidate(1, 100, device=THEIRS, measured_at=2), older, ours) == ExactHit((ours,))


def test_what_failed_last_is_kept_apart() -> None:
    good = candidate(1, 100)
    bad = candidate(2, 0, status="compile", run_nanoseconds=())
    recovered = [
        candidate(3, 0, status="timeout", run_nanoseconds=(), measured_at=1),
        candidate(3, 300, measured_at=2),
    ]
    assert exact(good, bad, *recovered) == ExactHit((good, recovered[1]), (bad,))


def test_the_default_schedule_is_an_answer_but_teaches_nothing() -> None:
    default = make_record(template="", decisions=())
    assert exact(default) == ExactHit((default,))
    assert transfer(default) is None


def test_a_source_whose_candidates_all_failed_takes_no_place() -> None:
    failed = make_record("near", status="wrong", run_nanoseconds=())
    good = make_record("far", shape=make_shape(extents=(64, 4096)))
    assert present(transfer(failed, good)).source_workloads == (good.key,)


def test_eight_neighbours_give_four_records_each_nearest_first() -> None:
    records = [
        make_record(f"n{extent}", shape=make_shape(extents=(64, extent)), decisions=((3, (tile,)),))
        for extent in range(65, 77)
        for tile in range(1, 7)
    ]
    found = present(transfer(*records))
    assert found.source_workloads == tuple(make_key(f"n{extent}") for extent in range(65, 73))
    assert len(found.records) == 8 * 4


def test_another_target_or_skeleton_is_no_neighbour() -> None:
    other_target = make_record("x", key=make_key("x", "f" * 64))
    assert transfer(other_target, make_record("y", shape=make_shape("other"))) is None


@given(RECORDS)
def test_no_candidate_is_both_offered_and_known_to_fail(records: list[TuningRecord]) -> None:
    found = exact(*records)
    if found is not None:
        offered = {record.decisions for record in found.records}
        assert not offered & {record.decisions for record in found.failures}


def test_what_claims_less_than_the_least_time_is_dropped_and_counted() -> None:
    index = RecordIndex()
    honest, lie = candidate(1, 900), candidate(2, 899)
    failed = candidate(3, 0, status="timeout", run_nanoseconds=())
    index.add([honest, lie, failed])
    assert index.discard_faster(make_key("unknown"), 900) == 0
    assert index.discard_faster(make_key(), 900) == 1
    assert index.exact(make_key()) == ExactHit((honest,), (failed,))


@given(RECORDS, RECORDS, RECORDS)
def test_a_union_of_record_sets_may_be_built_in_any_grouping(
    one: list[TuningRecord], two: list[TuningRecord], three: list[TuningRecord]
) -> None:
    """Commutative, associative and idempotent, down to every answer."""
    expected = answers([one, two, three])
    assert answers([three, one, two]) == expected
    assert answers([[*one, *two], three]) == expected
    assert answers([one, [*two, *three]]) == expected
    assert answers([one, two, three, two, one]) == expected


def answers(additions: list[list[TuningRecord]]) -> list[object]:
    index = RecordIndex(OURS)
    for records in additions:
        index.add(records)
    keys = [make_key(name) for name in ("w", "near", "far", "new")]
    shape = make_shape(extents=(64, 64))
    return [(index.exact(key), index.transfer(key, shape), index.failures(key)) for key in keys]


def stored(record: TuningRecord) -> StoredRecord:
    return StoredRecord(record, encode_record(record))


def hot_records_candidate(
    number: int, milliseconds: float | None = None, **changes: object
) -> StoredRecord:
    """One of the candidates of a workload; it failed where it has no time."""
    times = () if milliseconds is None else (round(milliseconds * 1e6),) * 5
    usual: dict[str, object] = {
        "decisions": ((3, (number, 1)),),
        "run_nanoseconds": times,
        "status": "ok" if times else "compile",
    }
    return stored(make_record("w", **(usual | changes)))


def best(records: list[StoredRecord]) -> list[StoredRecord]:
    hot = hot_records.HotRecords(2**53)
    hot.add(records)
    ((_, found),) = hot.workloads()
    return found


def test_the_fastest_of_each_kind_of_device_are_kept_fastest_first() -> None:
    here = [hot_records_candidate(n, 1.0 + n) for n in range(20)]
    other = replace(here[0].record.device, name="another")
    there = [hot_records_candidate(n, 100.0 + n, device=other) for n in range(3)]
    assert best([*there, *reversed(here)]) == [*here[: hot_records.BEST_OF_EACH_DEVICE], *there]


def test_the_latest_failures_are_kept_after_what_works() -> None:
    failures = [hot_records_candidate(n, measured_at=n) for n in range(hot_records.FAILURES + 5)]
    works = hot_records_candidate(999, 1.0)
    assert best([*failures, works]) == [works, *failures[:4:-1]]


def test_the_default_schedule_is_kept_however_slow_it_is() -> None:
    default = hot_records_candidate(0, 999.0, template="")
    assert default in best([*(hot_records_candidate(n, 1.0 + n) for n in range(20)), default])


def test_the_fastest_confirmed_one_is_kept_behind_any_number_of_brief_looks() -> None:
    brief = [hot_records_candidate(n, run_nanoseconds=(1000 + n,), status="ok") for n in range(400)]
    confirmed = [hot_records_candidate(500 + n, 9.0 + n) for n in range(3)]
    assert best([*confirmed, *brief]) == [*brief[: hot_records.BEST_OF_EACH_DEVICE], confirmed[0]]


def test_of_one_second_a_failure_counts_before_what_ran_and_then_what_was_measured_longer() -> None:
    brief = hot_records_candidate(1, run_nanoseconds=(9_999_999,), status="ok")
    confirmed, failed = hot_records_candidate(1, 1.0), hot_records_candidate(1)
    assert best([brief, confirmed]) == best([confirmed, brief]) == [confirmed]
    assert best([failed, confirmed]) == best([confirmed, failed]) == [failed]


def test_of_one_candidate_the_latest_measurement_counts() -> None:
    early, late = (
        hot_records_candidate(1, 1.0, measured_at=1),
        hot_records_candidate(1, 9.0, measured_at=2),
    )
    assert best([early, late]) == best([late, early]) == [late]


@given(st.randoms(use_true_random=False))
def test_the_order_in_which_records_come_does_not_matter(rng: random.Random) -> None:
    records = [hot_records_candidate(n, 1.0 + n % 7) for n in range(30)]
    records += [hot_records_candidate(100 + n, measured_at=n) for n in range(40)]
    assert best(rng.sample(records, len(records))) == best(records)


def test_what_is_cut_on_the_way_is_what_would_be_cut_in_the_end() -> None:
    many = [hot_records_candidate(n, 1000.0 - n) for n in range(400)]
    assert best(many) == many[: -hot_records.BEST_OF_EACH_DEVICE - 1 : -1]


def test_workloads_come_in_their_order_and_everything_is_counted() -> None:
    hot = hot_records.HotRecords(2**53)
    hot.add([stored(make_record(name)) for name in "cab"])
    names = [workload for workload, _ in hot.workloads()]
    assert names == sorted(hexdigest(name) for name in "abc")
    assert hot.added == 3


def test_a_shape_is_taught_by_a_schedule_that_works() -> None:
    other = make_shape("other")
    assert (
        hot_records.shape_to_teach(
            [hot_records_candidate(1), hot_records_candidate(2, 1.0, shape=other)]
        )
        == other
    )
    assert (
        hot_records.shape_to_teach(
            [hot_records_candidate(1), hot_records_candidate(2, 1.0, template="")]
        )
        is None
    )


# Toolchains.

OLD, NEW = Toolchain(tvm="0.26", ffi="0.1"), Toolchain(tvm="0.27", ffi="0.1", schedules="2")


def timed(number: int, milliseconds: float, toolchain: Toolchain, at: int = 1) -> TuningRecord:
    return hot_records_candidate(
        number, milliseconds, toolchain=toolchain, measured_at=at, device=OURS
    ).record


def index_of(toolchain: Toolchain, *records: TuningRecord) -> RecordIndex:
    index = RecordIndex(OURS, toolchain)
    index.add(records)
    return index


def test_each_toolchain_is_served_its_own_measurement_of_a_candidate_first() -> None:
    old, new = timed(1, 1.0, OLD, at=1), timed(1, 9.0, NEW, at=2)
    for toolchain, record in ((OLD, old), (NEW, new)):
        assert index_of(toolchain, old, new).exact(make_key()) == ExactHit((record,))


def test_what_another_toolchain_measured_ranks_behind_however_fast_it_claims_to_be() -> None:
    old, new = timed(1, 0.000001, OLD), timed(2, 9.0, NEW)
    assert index_of(NEW, old, new).exact(make_key()) == ExactHit((new, old))


def test_a_failure_with_one_toolchain_hides_nothing_from_another() -> None:
    old = timed(1, 1.0, OLD, at=1)
    failed = replace(old, toolchain=NEW, status="wrong", run_nanoseconds=(), measured_at=2)
    assert index_of(OLD, old, failed).exact(make_key()) == ExactHit((old,))
    assert index_of(NEW, old, failed).exact(make_key()) is None


def test_a_compaction_keeps_the_measurements_of_the_last_toolchains_of_a_device() -> None:
    of_each = [
        stored(timed(1, 1.0 + n, Toolchain(tvm=str(n), ffi="0.1"), at=n))
        for n in range(hot_records.TOOLCHAINS + 2)
    ]
    assert set(best(of_each)) == set(of_each[-hot_records.TOOLCHAINS :])
    crowd = [stored(timed(n, 0.1, NEW, at=99)) for n in range(400)]
    assert of_each[0] in best([*crowd, of_each[0]])
