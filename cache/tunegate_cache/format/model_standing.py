"""The speed of a whole model, compiled and under the runtime that ships instead, kept as records.

A model is a workload like any other: its key is a digest of its tasks. It has one record for each
of the two runtimes, whose template consists of the role, and which has no decisions. This way they
are checked, signed, revoked and compacted like all records.
"""

import hashlib
from collections.abc import Iterable

import msgspec

from tunegate_cache.format.records import (
    DeviceFingerprint,
    Provenance,
    Toolchain,
    TuningRecord,
    WorkloadKey,
    WorkloadShape,
)


def _role(name: str) -> str:
    return hashlib.sha256(f"tunegate: a whole model, {name}".encode()).hexdigest()


COMPILED, OTHER = _role("compiled"), _role("under another runtime")


class ModelStanding(msgspec.Struct, frozen=True, kw_only=True):
    """The times of one inference, in nanoseconds."""

    key: WorkloadKey
    compiled_nanoseconds: int
    other_nanoseconds: int


def shape_of(key: WorkloadKey) -> WorkloadShape:
    """Returns a shape that no other model has: nothing is transferred between models."""
    return WorkloadShape(key.workload, ())


def standing_records(
    standing: ModelStanding,
    *,
    device: DeviceFingerprint,
    toolchain: Toolchain,
    measured_at: int,
    source: Provenance,
) -> tuple[TuningRecord, TuningRecord]:
    def record(role: str, nanoseconds: int) -> TuningRecord:
        return TuningRecord(
            key=standing.key,
            shape=shape_of(standing.key),
            template=role,
            decisions=(),
            run_nanoseconds=(max(1, nanoseconds),),
            status="ok",
            device=device,
            toolchain=toolchain,
            measured_at=measured_at,
            source=source,
        )

    return (
        record(COMPILED, standing.compiled_nanoseconds),
        record(OTHER, standing.other_nanoseconds),
    )


def standing_of(
    key: WorkloadKey,
    records: Iterable[TuningRecord],
    *,
    device: DeviceFingerprint,
    toolchain: Toolchain,
) -> ModelStanding | None:
    """Returns the measurements on this kind of device with this compiler and driver,
    or None."""
    here = {
        record.template: record
        for record in records
        if record.key == key
        and record.run_nanoseconds
        and (record.device.name, record.device.units) == (device.name, device.units)
        and record.is_timed_by(toolchain, device.driver)
    }
    if COMPILED not in here or OTHER not in here:
        return None
    return ModelStanding(
        key=key,
        compiled_nanoseconds=here[COMPILED].run_nanoseconds[0],
        other_nanoseconds=here[OTHER].run_nanoseconds[0],
    )
