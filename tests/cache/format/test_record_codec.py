"""Records as lines of JSON, and every line that is none."""

import json
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.tuning_records import RECORDS, hexdigest, make_record
from tunegate_cache.format import record_codec as wire
from tunegate_cache.format import records
from tunegate_cache.format.cache_statistics import CacheStatistics
from tunegate_cache.format.record_codec import RefusedLine
from tunegate_cache.format.validate import MAX_RECORD_BYTES


def changed(**fields: object) -> bytes:
    return json.dumps({**json.loads(wire.encode_record(make_record())), **fields}).encode()


def reason(line: bytes) -> str:
    refused = wire.decode_records(line)
    assert isinstance(refused, RefusedLine)
    return refused.reason


@given(RECORDS)
def test_a_record_survives_the_wire(record: records.TuningRecord) -> None:
    assert wire.decode_records(wire.encode_record(record)) == record


def test_the_line_is_flat_sorted_and_short() -> None:
    line = wire.encode_record(make_record())
    assert list(json.loads(line)) == sorted(
        ["v", "wk", "sk", "ext", "tk", "th", "dec", "ns", "st", "dev", "env", "meas", "src"]
    )
    assert b'"dec":[[3,[4,16]],[5,[2]]]' in line
    assert b" " not in line.replace(b"a machine", b"")


def test_a_line_of_version_1_will_always_be_read() -> None:
    recorded = (
        '{"dec":[[3,[4,16]],[5,[2]]],"dev":{"clk":"unknown","drv":"","kind":"cpu","mem":8,'
        '"name":"cpu","units":2,"uuid":""},"env":{"cuda":"","ffi":"0.1","tvm":"0.27"},'
        f'"ext":[64,64],"meas":{{"ts":1700000000}},"ns":[1000000,1010000,990000],'
        f'"sk":"{hexdigest("s")}","src":{{"ref":"","repo":"","run":"","sha":""}},"st":"ok",'
        f'"th":"{hexdigest("template")}","tk":"{hexdigest("target")}","v":1,'
        f'"wk":"{hexdigest("w")}"}}'
    ).encode()
    assert wire.decode_records(recorded) == make_record()
    assert wire.encode_record(make_record()) == recorded


def test_unknown_fields_are_tolerated_and_so_are_their_floats() -> None:
    assert wire.decode_records(changed(chk={"ref": "cpu-f64", "rel": 2.1e-3})) == make_record()


def test_unknown_fields_must_be_harmless_too() -> None:
    good = changed(later=1)
    assert reason(good.replace(b'"later": 1', b'"later": 1, "later": 2')) == "duplicate key"
    assert reason(changed(later=[[[[[[[[1]]]]]]]])) == "nested too deep"
    assert reason(changed(later=2**60)) == "number out of range"


def test_a_duplicate_of_a_known_field_is_refused() -> None:
    line = wire.encode_record(make_record())
    assert reason(line.replace(b'"v":1', b'"v":1,"v":1')) == "duplicate key"
    assert reason(line.replace(b'"mem":8', b'"mem":8,"mem":8')) == "duplicate key"


@pytest.mark.parametrize(
    "line",
    [
        b"",
        b"{",
        b"[]",
        b"nonsense",
        b"[" * 60_000,
        wire.encode_record(make_record()).replace(b'"cpu"', b'"\x80"'),
        changed(ns=[1.5]),
        changed(ns=[True]),
        changed(ns="1"),
        changed(st="fine"),
        changed(wk=7),
        changed(dec=[[3]]),
        changed(dec=[[3, [1], 1]]),
        changed(dec={"3": [1]}),
        changed(dev={}),
        wire.encode_record(make_record()).replace(b"1000000", b"NaN"),
        wire.encode_record(make_record()).replace(b"1000000", b"1e999"),
    ],
)
def test_what_is_no_record_is_a_reason_not_an_exception(line: bytes) -> None:
    assert reason(line) == "not a record"


def test_a_line_is_not_even_parsed_when_it_is_too_large() -> None:
    assert reason(b" " * (MAX_RECORD_BYTES + 1)) == "too large"


def test_a_refused_line_says_whose_it_was_where_that_can_be_read() -> None:
    assert wire.decode_records(changed(ns=[0])) == RefusedLine("impossible time", hexdigest("w"))
    assert wire.decode_records(changed(ns="soon")) == RefusedLine("not a record", hexdigest("w"))
    assert wire.decode_records(b"{}") == RefusedLine("not a record", "")


@given(st.binary(max_size=200))
def test_any_bytes_are_a_record_or_a_reason(line: bytes) -> None:
    assert isinstance(wire.decode_records(line), RefusedLine)


@given(st.integers(0, 600), st.binary(min_size=1, max_size=3))
def test_any_damage_to_a_line_is_a_valid_record_or_a_reason(place: int, damage: bytes) -> None:
    line = wire.encode_record(make_record())
    decoded = wire.decode_records(line[:place] + damage + line[place + len(damage) :])
    assert isinstance(decoded, RefusedLine | records.TuningRecord)


def timed(*milliseconds: float) -> records.TuningRecord:
    return make_record(run_nanoseconds=tuple(round(ms * 1e6) for ms in milliseconds))


def test_a_candidate_that_failed_takes_for_ever_and_is_never_confirmed() -> None:
    failed = make_record(status="wrong", run_nanoseconds=())
    assert failed.median_ms == math.inf
    assert not failed.is_confirmed
    assert failed.shrunk_ms == math.inf


def test_enough_repeats_or_one_long_run_confirm_a_time() -> None:
    assert timed(*[1.0] * records.CONFIRMED_REPEATS).is_confirmed
    assert not timed(*[1.0] * (records.CONFIRMED_REPEATS - 1)).is_confirmed
    assert timed(1000.1).is_confirmed
    assert not timed(1000.0).is_confirmed


def test_a_line_is_shown_once_and_in_the_order_of_its_first_time() -> None:
    statistics = CacheStatistics()
    for text in ("the bucket is slow", "a segment is corrupt", "the bucket is slow"):
        statistics.note(text)
    assert statistics.notes == ("the bucket is slow", "a segment is corrupt")
