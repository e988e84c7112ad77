from pathlib import Path

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.compacted_place import Place
from tests.support.tuning_records import make_key
from tests.support.tuning_tasks import DEVICE
from tunegate_cache.format import model_election, model_standing, task_list
from tunegate_cache.format.how_built import HowBuilt, mark_of
from tunegate_cache.format.record_codec import decode_records, encode_record
from tunegate_cache.format.records import (
    DeviceFingerprint,
    ExactHit,
    Provenance,
    Toolchain,
    TuningRecord,
    WorkloadKey,
    WorkloadShape,
)

KEY = WorkloadKey("1" * 64, "2" * 64)
TVM = Toolchain(tvm="0.27.0", ffi="0.1.14")
NOW = 1_700_000_000
ELECTION = model_election.ModelElection(
    key=KEY, winner="tvm", nanoseconds={"tvm": 900, "onnxruntime": 1_000}, measured_at=NOW
)
NAMES = ("tvm", "onnxruntime")


def records_of(election: model_election.ModelElection = ELECTION) -> tuple[TuningRecord, ...]:
    return model_election.election_records(
        election, device=DEVICE, toolchain=TVM, source=Provenance()
    )


def read(
    *records: TuningRecord,
    device: DeviceFingerprint = DEVICE,
    toolchain: Toolchain = TVM,
    now: int = NOW,
) -> model_election.ModelElection | None:
    return model_election.election_of(
        KEY, records, NAMES, device=device, toolchain=toolchain, now=now
    )


def test_an_election_comes_back_from_its_records_as_bytes() -> None:
    decoded = [decode_records(encode_record(record)) for record in records_of()]
    assert read(*(each for each in decoded if isinstance(each, TuningRecord))) == ELECTION


def test_an_election_that_was_cut_short_comes_back_as_one() -> None:
    cut = msgspec.structs.replace(ELECTION, is_cut_short=True)
    assert read(*records_of(cut)) == cut
    whole = msgspec.structs.replace(ELECTION, measured_at=NOW + 1)
    assert read(*records_of(cut), *records_of(whole), now=NOW + 1) == whole
    assert read(*records_of(cut), *records_of()) is None


def test_one_that_goes_on_knows_who_cannot_ship_and_a_whole_one_need_not() -> None:
    cut = msgspec.structs.replace(ELECTION, is_cut_short=True, refused=frozenset({"narrow"}))
    records = records_of(cut)
    names = (*NAMES, "narrow")
    at = {"device": DEVICE, "toolchain": TVM, "now": NOW}
    assert model_election.election_of(KEY, records, names, **at) == cut  # type: ignore[arg-type]  # of one call
    assert model_election.election_of(KEY, records[::2], names, **at) is not None  # type: ignore[arg-type]
    assert max(records, key=lambda each: each.median_ms) is records[-1]
    assert len(records_of(msgspec.structs.replace(cut, is_cut_short=False))) == len(NAMES)


def test_the_winners_record_alone_says_how_it_was_built() -> None:
    how = HowBuilt(compiled=(3, 4), kept=(mark_of("a" * 64),))
    election = msgspec.structs.replace(ELECTION, how=how)
    winner, other = records_of(election)
    assert read(winner, other) == election
    assert other.decisions == ()
    misled = msgspec.structs.replace(other, decisions=winner.decisions)
    assert read(records_of()[0], misled) == ELECTION


ELSEWHERE = [
    (msgspec.structs.replace(DEVICE, name="another"), TVM, NOW),
    (msgspec.structs.replace(DEVICE, units=64), TVM, NOW),
    (DEVICE, Toolchain(tvm="0.28.0", ffi="0.1.14"), NOW),
    (DEVICE, TVM, NOW + model_election.LASTS_SECONDS + 1),
    (DEVICE, TVM, NOW - 1),
]
OTHER_DRIVER = (msgspec.structs.replace(DEVICE, driver="of tomorrow"), TVM, NOW)


@pytest.mark.parametrize(("device", "toolchain", "now"), [*ELSEWHERE, OTHER_DRIVER])
def test_another_device_driver_compiler_or_time_says_nothing(
    device: DeviceFingerprint, toolchain: Toolchain, now: int
) -> None:
    assert read(*records_of(), device=device, toolchain=toolchain, now=now) is None


def test_the_latest_of_two_elections_counts() -> None:
    later = msgspec.structs.replace(ELECTION, winner="onnxruntime", measured_at=NOW + 5)
    assert read(*records_of(), *records_of(later), now=NOW + 9) == later


def test_two_winners_at_once_none_and_a_stranger_are_no_election() -> None:
    other = msgspec.structs.replace(ELECTION, winner="onnxruntime")
    assert read(*records_of(), *records_of(other)) is None
    assert read(*records_of()[1:]) is None
    stranger = msgspec.structs.replace(ELECTION, winner="x", nanoseconds={"x": 1})
    assert read(*records_of(stranger)) is None


def test_a_failure_in_place_of_the_winner_is_no_election() -> None:
    winner, other = records_of()
    assert read(msgspec.structs.replace(winner, run_nanoseconds=(), status="wrong"), other) is None


def test_a_slow_winner_among_many_survives_a_compaction(tmp_path: Path) -> None:
    """An incumbent ships as long as nobody is clearly faster."""
    place, key = Place(tmp_path), make_key("model")
    names = [f"c{number}" for number in range(12)]
    times = {name: 1_000 + number for number, name in enumerate(names)}
    election = model_election.ModelElection(
        key=key, winner="c11", nanoseconds=times, measured_at=NOW
    )
    place.archive(*records_of(election))
    found = place.cache().standings([key])[key]
    assert isinstance(found, ExactHit)
    known = model_election.election_of(
        key, found.records, names, device=DEVICE, toolchain=TVM, now=NOW
    )
    assert known is not None
    assert (known.winner, len(known.nanoseconds)) == ("c11", model_election.MOST_CANDIDATES)


STANDING = model_standing.ModelStanding(
    key=KEY, compiled_nanoseconds=9_000_000, other_nanoseconds=1_000_000
)


def model_standing_records_of(
    standing: model_standing.ModelStanding = STANDING,
) -> tuple[TuningRecord, ...]:
    return model_standing.standing_records(
        standing, device=DEVICE, toolchain=TVM, measured_at=5, source=Provenance()
    )


def test_a_standing_comes_back_from_its_records_as_bytes() -> None:
    read = [decode_records(encode_record(record)) for record in model_standing_records_of()]
    records = [record for record in read if isinstance(record, TuningRecord)]
    assert model_standing.standing_of(KEY, records, device=DEVICE, toolchain=TVM) == STANDING
    assert {record.shape for record in records} == {model_standing.shape_of(KEY)}


@pytest.mark.parametrize(
    ("device", "toolchain"),
    [
        (msgspec.structs.replace(DEVICE, name="another"), TVM),
        (msgspec.structs.replace(DEVICE, units=64), TVM),
        (msgspec.structs.replace(DEVICE, driver="of tomorrow"), TVM),
        (DEVICE, Toolchain(tvm="0.28.0", ffi="0.1.14")),
    ],
)
def test_another_device_driver_or_compiler_says_nothing(
    device: DeviceFingerprint, toolchain: Toolchain
) -> None:
    assert (
        model_standing.standing_of(
            KEY, model_standing_records_of(), device=device, toolchain=toolchain
        )
        is None
    )


def test_half_of_one_or_one_of_another_model_is_none() -> None:
    compiled, _ = model_standing_records_of()
    assert model_standing.standing_of(KEY, [compiled], device=DEVICE, toolchain=TVM) is None
    other = WorkloadKey("3" * 64, "2" * 64)
    assert (
        model_standing.standing_of(other, model_standing_records_of(), device=DEVICE, toolchain=TVM)
        is None
    )


def test_a_failure_in_their_place_is_none() -> None:
    failed = [
        msgspec.structs.replace(record, run_nanoseconds=(), status="wrong")
        for record in model_standing_records_of()
    ]
    assert model_standing.standing_of(KEY, failed, device=DEVICE, toolchain=TVM) is None


def test_a_standing_survives_a_compaction_and_is_no_hit(tmp_path: Path) -> None:
    place = Place(tmp_path)
    standing = msgspec.structs.replace(STANDING, key=make_key("model"))
    place.archive(*model_standing_records_of(standing))
    cache = place.cache()
    found = cache.standings([standing.key])[standing.key]
    assert isinstance(found, ExactHit)
    known = model_standing.standing_of(standing.key, found.records, device=DEVICE, toolchain=TVM)
    assert known == standing
    assert (cache.statistics.exact, cache.statistics.misses) == (0, {})
    assert cache.standings([make_key("another")]) == {}


TASK_LIST_KEY = make_key("a model")
_DIGESTS = st.text("0123456789abcdef", min_size=64, max_size=64)
_NUMBERS = st.integers(0, 2**53 - 1)
_TEXTS = st.text(st.characters(codec="utf-8", exclude_categories=("C", "Z")), max_size=40)
_TASKS = st.builds(
    task_list.ListedTask,
    workload=_DIGESTS,
    shape=st.builds(
        WorkloadShape, _DIGESTS, st.lists(st.integers(1, 2**53 - 1), max_size=40).map(tuple)
    ),
    operator=_TEXTS,
    dtype=_TEXTS,
    name=_TEXTS,
    weight=st.integers(1, 2**53 - 1),
    flops=_NUMBERS,
    bytes_moved=_NUMBERS,
)


def task(number: int, extents: int = 3) -> task_list.ListedTask:
    return task_list.ListedTask(
        workload=f"{number:064x}",
        shape=WorkloadShape("b" * 64, (7,) * extents),
        operator="conv2d_add",
        dtype="float32",
        name=f"features/conv_{number}",
        weight=1,
        flops=0,
        bytes_moved=0,
    )


def listed(count: int = 2, *, at: int = NOW, extents: int = 3) -> task_list.TaskList:
    tasks = tuple(task(number, extents) for number in range(count))
    return task_list.TaskList(key=TASK_LIST_KEY, target="c" * 64, tasks=tasks, listed_at=at)


def task_list_records_of(tasks: task_list.TaskList) -> tuple[TuningRecord, ...]:
    return task_list.list_records(tasks, device=DEVICE, toolchain=TVM, source=Provenance())


def task_list_read(
    *records: TuningRecord,
    key: WorkloadKey = TASK_LIST_KEY,
    device: DeviceFingerprint = DEVICE,
    toolchain: Toolchain = TVM,
    now: int = NOW,
) -> task_list.TaskList | None:
    return task_list.list_of(key, records, device=device, toolchain=toolchain, now=now)


@given(st.lists(_TASKS, max_size=5, unique_by=lambda each: each.workload), _DIGESTS)
def test_a_list_is_read_from_its_records(tasks: list[task_list.ListedTask], target: str) -> None:
    whole = task_list.TaskList(key=TASK_LIST_KEY, target=target, tasks=tuple(tasks), listed_at=NOW)
    decoded = [decode_records(encode_record(record)) for record in task_list_records_of(whole)]
    assert task_list_read(*(each for each in decoded if isinstance(each, TuningRecord))) == whole


def test_a_long_list_has_several_records_and_needs_each() -> None:
    whole = listed(300, extents=40)
    first, *others = task_list_records_of(whole)
    assert len(others) > 1
    assert task_list_read(*others, first) == whole
    assert task_list_read(*others) is None
    assert task_list_read(first) is None


def test_a_list_that_no_cache_would_keep_has_no_record() -> None:
    assert task_list_records_of(listed(512, extents=60)) == ()
    odd = msgspec.structs.replace(listed(1), tasks=(entry("a\nline"),))
    assert task_list_records_of(odd) == ()
    assert task_list_records_of(msgspec.structs.replace(odd, tasks=(entry("n" * 5_000),))) == ()


def test_an_operator_of_a_recurrent_layer_is_long_and_kept() -> None:
    """One fused kernel of captcha_crnn has 71 operators in its name."""
    whole = msgspec.structs.replace(listed(1), tasks=(entry("_expand_dims" * 71),))
    assert task_list_read(*task_list_records_of(whole)) == whole


def entry(name: str) -> task_list.ListedTask:
    return msgspec.structs.replace(task(1), name=name)


@pytest.mark.parametrize(("device", "toolchain", "now"), ELSEWHERE)
def test_another_device_compiler_or_time_says_nothing_of_tasks(
    device: DeviceFingerprint, toolchain: Toolchain, now: int
) -> None:
    assert (
        task_list_read(*task_list_records_of(listed()), device=device, toolchain=toolchain, now=now)
        is None
    )
    assert task_list_read(*task_list_records_of(listed()), key=make_key("another")) is None


def test_the_latest_of_two_lists_counts() -> None:
    later = listed(3, at=NOW + 5)
    assert (
        task_list_read(*task_list_records_of(listed()), *task_list_records_of(later), now=NOW + 9)
        == later
    )


@given(st.data())
def test_a_list_that_was_tampered_with_is_none_or_another_possible_one(data: st.DataObject) -> None:
    (record,) = task_list_records_of(listed())
    row = [list(values) for _, values in record.decisions]
    values = data.draw(st.sampled_from(row))
    at = data.draw(st.integers(0, len(values) - 1))
    values[at] = data.draw(st.integers(-2, 2**53) | st.integers(1, 40))
    changed = tuple(
        (index, tuple(new)) for (index, _), new in zip(record.decisions, row, strict=True)
    )
    found = task_list_read(msgspec.structs.replace(record, decisions=changed))
    assert found is None or task_list_records_of(found)


def test_a_row_that_ends_early_or_late_is_none() -> None:
    (record,) = task_list_records_of(listed())
    assert task_list_read(msgspec.structs.replace(record, decisions=record.decisions[:-1])) is None
    longer = (*record.decisions, (2_000, (5, 5)))
    assert task_list_read(msgspec.structs.replace(record, decisions=longer)) is None


def test_a_task_that_is_listed_twice_makes_no_list() -> None:
    assert task_list_records_of(msgspec.structs.replace(listed(), tasks=(task(1), task(1)))) == ()


def test_all_pieces_of_a_list_survive_a_compaction(tmp_path: Path) -> None:
    place, whole = Place(tmp_path), listed(300, extents=40)
    records = task_list_records_of(whole)
    assert 1 < len(records) <= task_list.MOST_PIECES
    place.archive(*records)
    found = place.cache().standings([TASK_LIST_KEY])[TASK_LIST_KEY]
    assert isinstance(found, ExactHit)
    assert task_list_read(*found.records) == whole
