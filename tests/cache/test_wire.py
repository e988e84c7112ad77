from __future__ import annotations

import json

import pytest
import zstandard
from hypothesis import given
from hypothesis import strategies as st

from tests.support.tuning_records import make_record
from tunegate_cache import segment, wire
from tunegate_cache.records import TuningRecord


def changed(**fields: object) -> bytes:
    return json.dumps({**json.loads(wire.encode(make_record())), **fields}).encode()


def test_a_record_survives_the_wire_with_unknown_fields() -> None:
    assert wire.decode(changed(later="field")) == make_record()


@pytest.mark.parametrize(
    "line",
    [
        b"",
        b"{",
        b"[]",
        b"nonsense",
        b"[" * 100_000,
        changed(v=2),
        changed(run_nanoseconds=[-1]),
        changed(run_nanoseconds=[0]),
        changed(run_nanoseconds=[1e999]),
        changed(run_nanoseconds=[10**14]),
        changed(run_nanoseconds=[]),
        changed(run_nanoseconds=[1] * 65),
        changed(template="x"),
        changed(decisions=[[-3, [1]]]),
        changed(decisions=[[5, [1]], [3, [1]]]),
        changed(decisions=[[1, [2**60]]]),
        changed(decisions=[[1, []]]),
        changed(decisions=[[i, [1]] for i in range(300)]),
        changed(key=["../../x", "y"]),
        changed(status="fine"),
        changed(shape={"skeleton": "x", "extents": [0]}),
        wire.encode(make_record()).replace(b"1000000", b"NaN"),
        b" " * (wire.MAX_RECORD_BYTES + 1),
    ],
)
def test_a_malformed_record_is_a_reason_not_an_exception(line: bytes) -> None:
    assert isinstance(wire.decode(line), str)


@given(st.binary(max_size=200))
def test_any_bytes_are_a_record_or_a_reason(line: bytes) -> None:
    assert isinstance(wire.decode(line), str | TuningRecord)


@given(st.lists(st.integers(1, 10**13), min_size=1, max_size=64))
def test_a_segment_gives_back_its_records(times: list[int]) -> None:
    record = make_record(run_nanoseconds=tuple(times))
    body = segment.pack([record])
    assert segment.unpack(body, segment.digest(body)).records == (record,)


def test_a_bomb_is_refused() -> None:
    body = zstandard.ZstdCompressor().compress(b"\n" * (300 * 1024 * 1024))
    with pytest.raises(segment.CorruptSegmentError, match="more than is allowed"):
        segment.unpack(body, segment.digest(body))


@pytest.mark.parametrize("body", [b"", b"xx", zstandard.ZstdCompressor().compress(b"x" * 999)[:-4]])
def test_a_damaged_body_is_refused_or_empty(body: bytes) -> None:
    try:
        contents = segment.unpack(body, segment.digest(body))
    except segment.CorruptSegmentError:
        return
    assert contents.records == ()
