"""Encodes records as bytes: one JSON object per line, flat, short names, no floats. Remote bytes
are read only here. Unknown fields are tolerated: later versions may say more."""

from __future__ import annotations

from typing import Literal

import msgspec

from tunegate_cache.format.records import (
    Decision,
    DeviceFingerprint,
    Provenance,
    RecordStatus,
    Toolchain,
    TuningRecord,
    WorkloadKey,
    WorkloadShape,
)
from tunegate_cache.format.validate import MAX_RECORD_BYTES, NOT_JSON, refusal, refusal_of_text


class _Device(msgspec.Struct):
    name: str
    kind: Literal["cpu", "cuda"]
    units: int
    mem: int
    drv: str = ""
    uuid: str = ""
    clk: Literal["locked", "floating", "unknown"] = "unknown"


class _Env(msgspec.Struct):
    tvm: str
    ffi: str
    cuda: str = ""
    sch: str | msgspec.UnsetType = msgspec.UNSET


class _Measurement(msgspec.Struct):
    ts: int


class _Source(msgspec.Struct):
    repo: str = ""
    ref: str = ""
    sha: str = ""
    run: str = ""


class _Line(msgspec.Struct):
    """Workload, skeleton, extents, target, template, decisions, times, status, ..."""

    v: int
    wk: str
    sk: str
    ext: tuple[int, ...]
    tk: str
    th: str
    dec: tuple[Decision, ...]
    ns: tuple[int, ...]
    st: RecordStatus
    dev: _Device
    env: _Env
    meas: _Measurement
    src: _Source


class _Owner(msgspec.Struct):
    wk: str


_encoder = msgspec.json.Encoder(order="sorted")
_lines = msgspec.json.Decoder(_Line)
_owners = msgspec.json.Decoder(_Owner)


def encode_record(record: TuningRecord) -> bytes:
    return _encoder.encode(_line(record))


def decode_records(text: bytes) -> TuningRecord | RefusedLine:
    """Returns a record that satisfies every rule, or why this line is none."""
    if len(text) > MAX_RECORD_BYTES:
        return RefusedLine("too large")
    try:
        record = _record(_lines.decode(text))
    except NOT_JSON:
        return RefusedLine("not a record", _owner(text))
    # What this module wrote has no duplicate keys, nesting or foreign numbers.
    reason = refusal(record) or (None if encode_record(record) == text else refusal_of_text(text))
    return record if reason is None else RefusedLine(reason, record.key.workload)


def _owner(text: bytes) -> str:
    try:
        return _owners.decode(text).wk
    except NOT_JSON:
        return ""


def _line(record: TuningRecord) -> _Line:
    device, source, env = record.device, record.source, record.toolchain
    return _Line(
        v=record.version,
        wk=record.key.workload,
        sk=record.shape.skeleton,
        ext=record.shape.extents,
        tk=record.key.target,
        th=record.template,
        dec=record.decisions,
        ns=record.run_nanoseconds,
        st=record.status,
        dev=_Device(
            name=device.name,
            kind=device.kind,
            units=device.units,
            mem=device.memory_bytes,
            drv=device.driver,
            uuid=device.uuid,
            clk=device.clocks,
        ),
        env=_Env(env.tvm, env.ffi, env.cuda, env.schedules or msgspec.UNSET),
        meas=_Measurement(record.measured_at),
        src=_Source(source.repository, source.ref, source.commit, source.run),
    )


def _record(line: _Line) -> TuningRecord:
    device, source, env = line.dev, line.src, line.env
    return TuningRecord(
        version=line.v,
        key=WorkloadKey(line.wk, line.tk),
        shape=WorkloadShape(line.sk, line.ext),
        template=line.th,
        decisions=line.dec,
        run_nanoseconds=line.ns,
        status=line.st,
        device=DeviceFingerprint(
            name=device.name,
            kind=device.kind,
            units=device.units,
            memory_bytes=device.mem,
            driver=device.drv,
            uuid=device.uuid,
            clocks=device.clk,
        ),
        toolchain=Toolchain(tvm=env.tvm, ffi=env.ffi, cuda=env.cuda, schedules=env.sch or ""),
        measured_at=line.meas.ts,
        source=Provenance(
            repository=source.repo, ref=source.ref, commit=source.sha, run=source.run
        ),
    )


# A line of a segment or a pack that must not be used.


class RefusedLine(msgspec.Struct, frozen=True):
    """A line that is no usable record; `workload` is its workload if it is readable."""

    reason: str
    workload: str = ""
