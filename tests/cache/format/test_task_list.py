from __future__ import annotations

from pathlib import Path

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.compacted_place import Place
from tests.support.tuning_records import make_key
from tests.support.tuning_tasks import DEVICE
from tunegate_cache.format.model_election import LASTS_SECONDS
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
from tunegate_cache.format.task_list import (
    MOST_PIECES,
    ListedTask,
    TaskList,
    list_of,
    list_records,
)

KEY = make_key("a model")
TVM = Toolchain(tvm="0.27.0", ffi="0.1.14")
NOW = 1_800_000_000
_DIGESTS = st.text("0123456789abcdef", min_size=64, max_size=64)
_NUMBERS = st.integers(0, 2**53 - 1)
_TEXTS = st.text(st.characters(codec="utf-8", exclude_categories=("C", "Z")), max_size=40)
_TASKS = st.builds(
    ListedTask,
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


def task(number: int, extents: int = 3) -> ListedTask:
    return ListedTask(
        workload=f"{number:064x}",
        shape=WorkloadShape("b" * 64, (7,) * extents),
        operator="conv2d_add",
        dtype="float32",
        name=f"features/conv_{number}",
        weight=1,
        flops=10,
        bytes_moved=20,
    )


def listed(count: int = 2, *, at: int = NOW, extents: int = 3) -> TaskList:
    tasks = tuple(task(number, extents) for number in range(count))
    return TaskList(key=KEY, target="c" * 64, tasks=tasks, listed_at=at)


def records_of(tasks: TaskList) -> tuple[TuningRecord, ...]:
    return list_records(tasks, device=DEVICE, toolchain=TVM, source=Provenance())


def read(
    *records: TuningRecord,
    key: WorkloadKey = KEY,
    device: DeviceFingerprint = DEVICE,
    toolchain: Toolchain = TVM,
    now: int = NOW,
) -> TaskList | None:
    return list_of(key, records, device=device, toolchain=toolchain, now=now)


@given(st.lists(_TASKS, max_size=5, unique_by=lambda each: each.workload), _DIGESTS)
def test_a_list_comes_back_from_its_records_as_bytes(tasks: list[ListedTask], target: str) -> None:
    whole = TaskList(key=KEY, target=target, tasks=tuple(tasks), listed_at=NOW)
    decoded = [decode_records(encode_record(record)) for record in records_of(whole)]
    assert read(*(each for each in decoded if isinstance(each, TuningRecord))) == whole


def test_a_long_list_has_several_records_and_needs_each() -> None:
    whole = listed(300, extents=40)
    first, *others = records_of(whole)
    assert len(others) > 1
    assert read(*others, first) == whole
    assert read(*others) is None
    assert read(first) is None


def test_a_list_that_no_cache_would_keep_has_no_record() -> None:
    assert records_of(listed(512, extents=60)) == ()
    odd = msgspec.structs.replace(listed(1), tasks=(named("a\nline"),))
    assert records_of(odd) == ()
    assert records_of(msgspec.structs.replace(odd, tasks=(named("n" * 5_000),))) == ()


def test_an_operator_of_a_recurrent_layer_is_long_and_kept() -> None:
    """One fused kernel of captcha_crnn has 71 operators in its name."""
    whole = msgspec.structs.replace(listed(1), tasks=(named("_expand_dims" * 71),))
    assert read(*records_of(whole)) == whole


def named(name: str) -> ListedTask:
    return msgspec.structs.replace(task(1), name=name)


@pytest.mark.parametrize(
    ("device", "toolchain", "now"),
    [
        (msgspec.structs.replace(DEVICE, name="another"), TVM, NOW),
        (msgspec.structs.replace(DEVICE, units=64), TVM, NOW),
        (DEVICE, Toolchain(tvm="0.28.0", ffi="0.1.14"), NOW),
        (DEVICE, TVM, NOW + LASTS_SECONDS + 1),
        (DEVICE, TVM, NOW - 1),
    ],
)
def test_another_device_compiler_or_time_says_nothing(
    device: DeviceFingerprint, toolchain: Toolchain, now: int
) -> None:
    assert read(*records_of(listed()), device=device, toolchain=toolchain, now=now) is None
    assert read(*records_of(listed()), key=make_key("another")) is None


def test_the_latest_of_two_lists_counts() -> None:
    later = listed(3, at=NOW + 5)
    assert read(*records_of(listed()), *records_of(later), now=NOW + 9) == later


@given(st.data())
def test_a_list_that_was_tampered_with_is_none_or_another_possible_one(data: st.DataObject) -> None:
    (record,) = records_of(listed())
    row = [list(values) for _, values in record.decisions]
    values = data.draw(st.sampled_from(row))
    at = data.draw(st.integers(0, len(values) - 1))
    values[at] = data.draw(st.integers(-2, 2**53) | st.integers(1, 40))
    changed = tuple(
        (index, tuple(new)) for (index, _), new in zip(record.decisions, row, strict=True)
    )
    found = read(msgspec.structs.replace(record, decisions=changed))
    assert found is None or records_of(found)


def test_a_row_that_ends_early_or_late_is_none() -> None:
    (record,) = records_of(listed())
    assert read(msgspec.structs.replace(record, decisions=record.decisions[:-1])) is None
    longer = (*record.decisions, (2_000, (5, 5)))
    assert read(msgspec.structs.replace(record, decisions=longer)) is None


def test_a_task_that_is_listed_twice_makes_no_list() -> None:
    assert records_of(msgspec.structs.replace(listed(), tasks=(task(1), task(1)))) == ()


def test_all_pieces_of_a_list_survive_a_compaction(tmp_path: Path) -> None:
    place, whole = Place(tmp_path), listed(300, extents=40)
    records = records_of(whole)
    assert 1 < len(records) <= MOST_PIECES
    place.publish(*records)
    place.compact()
    place.collect()
    found = place.cache().standings([KEY])[KEY]
    assert isinstance(found, ExactHit)
    assert read(*found.records) == whole
