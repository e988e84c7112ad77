from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from tests.support.compacted_place import Place
from tests.support.tuning_records import make_key
from tests.support.tuning_tasks import DEVICE
from tunegate_cache.format.model_standing import (
    ModelStanding,
    shape_of,
    standing_of,
    standing_records,
)
from tunegate_cache.format.record_codec import decode_records, encode_record
from tunegate_cache.format.records import (
    DeviceFingerprint,
    ExactHit,
    Provenance,
    Toolchain,
    TuningRecord,
    WorkloadKey,
)

KEY = WorkloadKey("1" * 64, "2" * 64)
TVM = Toolchain(tvm="0.27.0", ffi="0.1.14")
STANDING = ModelStanding(key=KEY, compiled_nanoseconds=9_000_000, other_nanoseconds=1_000_000)


def records_of(standing: ModelStanding = STANDING) -> tuple[TuningRecord, ...]:
    return standing_records(
        standing, device=DEVICE, toolchain=TVM, measured_at=5, source=Provenance()
    )


def test_a_standing_comes_back_from_its_records_as_bytes() -> None:
    read = [decode_records(encode_record(record)) for record in records_of()]
    records = [record for record in read if isinstance(record, TuningRecord)]
    assert standing_of(KEY, records, device=DEVICE, toolchain=TVM) == STANDING
    assert {record.shape for record in records} == {shape_of(KEY)}


@pytest.mark.parametrize(
    ("device", "toolchain"),
    [
        (msgspec.structs.replace(DEVICE, name="another"), TVM),
        (msgspec.structs.replace(DEVICE, units=64), TVM),
        (DEVICE, Toolchain(tvm="0.28.0", ffi="0.1.14")),
    ],
)
def test_another_device_or_compiler_says_nothing(
    device: DeviceFingerprint, toolchain: Toolchain
) -> None:
    assert standing_of(KEY, records_of(), device=device, toolchain=toolchain) is None


def test_half_of_one_or_one_of_another_model_is_none() -> None:
    compiled, _ = records_of()
    assert standing_of(KEY, [compiled], device=DEVICE, toolchain=TVM) is None
    other = WorkloadKey("3" * 64, "2" * 64)
    assert standing_of(other, records_of(), device=DEVICE, toolchain=TVM) is None


def test_a_failure_in_their_place_is_none() -> None:
    failed = [
        msgspec.structs.replace(record, run_nanoseconds=(), status="wrong")
        for record in records_of()
    ]
    assert standing_of(KEY, failed, device=DEVICE, toolchain=TVM) is None


def test_a_standing_survives_a_compaction_and_is_no_hit(tmp_path: Path) -> None:
    place = Place(tmp_path)
    standing = msgspec.structs.replace(STANDING, key=make_key("model"))
    place.publish(*records_of(standing))
    place.compact()
    place.collect()
    cache = place.cache()
    found = cache.standings([standing.key])[standing.key]
    assert isinstance(found, ExactHit)
    known = standing_of(standing.key, found.records, device=DEVICE, toolchain=TVM)
    assert known == standing
    assert (cache.statistics.exact, cache.statistics.misses) == (0, {})
    assert cache.standings([make_key("another")]) == {}
