"""Builders of tuning records."""

from __future__ import annotations

import hashlib

import msgspec

from tunegate_cache.format.records import (
    DeviceFingerprint,
    Toolchain,
    TuningRecord,
    WorkloadKey,
    WorkloadShape,
)


def hexdigest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


TARGET = hexdigest("target")


def make_key(workload: str = "w", target: str = TARGET) -> WorkloadKey:
    return WorkloadKey(hexdigest(workload), target)


def make_shape(skeleton: str = "s", extents: tuple[int, ...] = (64, 64)) -> WorkloadShape:
    return WorkloadShape(hexdigest(skeleton), extents)


def make_record(workload: str = "w", **changes: object) -> TuningRecord:
    record = TuningRecord(
        key=make_key(workload),
        shape=make_shape(),
        template=hexdigest("template"),
        decisions=((3, (4, 16)), (5, (2,))),
        run_nanoseconds=(1_000_000, 1_010_000, 990_000),
        status="ok",
        device=DeviceFingerprint(name="cpu", kind="cpu", units=2, memory_bytes=8),
        toolchain=Toolchain(tvm="0.27", ffi="0.1"),
        measured_at=1_795_000_000,
    )
    return msgspec.structs.replace(record, **changes)
