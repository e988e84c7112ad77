"""Hypothesis: any record that satisfies every rule."""

from __future__ import annotations

from typing import get_args

from hypothesis import strategies as st

from tests.support.tuning_records import hexdigest, make_record
from tunegate_cache.format.records import (
    DeviceFingerprint,
    Provenance,
    RecordStatus,
    Toolchain,
    WorkloadShape,
)

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
        WorkloadShape, DIGESTS, st.lists(st.integers(1, 2**53), max_size=16).map(tuple)
    ),
    device=st.builds(
        DeviceFingerprint,
        name=WORDS,
        kind=st.sampled_from(["cpu", "cuda"]),
        units=st.integers(0, 2**53),
        memory_bytes=st.integers(0, 2**53),
        driver=WORDS,
        uuid=WORDS,
        clocks=st.sampled_from(["locked", "floating", "unknown"]),
    ),
    toolchain=st.builds(Toolchain, tvm=WORDS, ffi=WORDS, cuda=WORDS),
    source=st.builds(Provenance, repository=WORDS, ref=WORDS, commit=WORDS, run=WORDS),
) | st.builds(
    lambda status: make_record(status=status, run_nanoseconds=()),
    st.sampled_from([status for status in get_args(RecordStatus) if status != "ok"]),
)
