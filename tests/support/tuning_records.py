"""Builders of tuning records."""

import hashlib
from typing import get_args

import msgspec
from hypothesis import strategies as st

from tunegate_cache.format import records


def hexdigest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


TARGET = hexdigest("target")


def make_key(workload: str = "w", target: str = TARGET) -> records.WorkloadKey:
    return records.WorkloadKey(hexdigest(workload), target)


def make_shape(skeleton: str = "s", extents: tuple[int, ...] = (64, 64)) -> records.WorkloadShape:
    return records.WorkloadShape(hexdigest(skeleton), extents)


def make_record(workload: str = "w", **changes: object) -> records.TuningRecord:
    record = records.TuningRecord(
        key=make_key(workload),
        shape=make_shape(),
        template=hexdigest("template"),
        decisions=((3, (4, 16)), (5, (2,))),
        run_nanoseconds=(1_000_000, 1_010_000, 990_000),
        status="ok",
        device=records.DeviceFingerprint(name="cpu", kind="cpu", units=2, memory_bytes=8),
        toolchain=records.Toolchain(tvm="0.27", ffi="0.1"),
        measured_at=1_700_000_000,
    )
    return msgspec.structs.replace(record, **changes)


# Hypothesis: any record that satisfies every rule.

DIGESTS = st.integers().map(lambda number: hexdigest(str(number)))
CHOICES = st.tuples(st.integers(-2, 4096))
FACTORS = st.lists(st.integers(1, 2**31), min_size=2, max_size=32).map(tuple)
DECISIONS = st.dictionaries(st.integers(0, 2**53), CHOICES | FACTORS, max_size=9).map(
    lambda found: tuple(sorted(found.items()))
)
PRINTABLE = st.characters(exclude_categories=["C", "Z"]) | st.just(" ")
WORDS = st.text(PRINTABLE, max_size=9)
TIMES = st.lists(st.integers(1, 10**13), min_size=1, max_size=64).map(tuple)
RECORDS = st.builds(
    make_record,
    st.just("w"),
    template=DIGESTS,
    decisions=DECISIONS,
    run_nanoseconds=TIMES,
    measured_at=st.integers(0, 2**40),
    shape=st.builds(
        records.WorkloadShape, DIGESTS, st.lists(st.integers(1, 2**53), max_size=16).map(tuple)
    ),
    device=st.builds(
        records.DeviceFingerprint,
        name=WORDS,
        kind=st.sampled_from(["cpu", "cuda"]),
        units=st.integers(0, 2**53),
        memory_bytes=st.integers(0, 2**53),
        driver=WORDS,
        uuid=WORDS,
        clocks=st.sampled_from(["locked", "floating", "unknown"]),
    ),
    toolchain=st.builds(records.Toolchain, tvm=WORDS, ffi=WORDS, cuda=WORDS, schedules=WORDS),
    source=st.builds(records.Provenance, repository=WORDS, ref=WORDS, commit=WORDS, run=WORDS),
) | st.builds(
    lambda status: make_record(status=status, run_nanoseconds=()),
    st.sampled_from([status for status in get_args(records.RecordStatus) if status != "ok"]),
)
