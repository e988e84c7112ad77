"""Every rule of a usable record, broken one at a time."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.tuning_records import hexdigest, make_record
from tunegate_cache.format.records import DeviceFingerprint, Provenance, Toolchain, WorkloadShape
from tunegate_cache.format.validate import refusal, refusal_of_text


def device(**changes: object) -> DeviceFingerprint:
    facts = {"name": "cpu", "kind": "cpu", "units": 2, "memory_bytes": 8, **changes}
    return DeviceFingerprint(**facts)  # type: ignore[arg-type] # the point is what is wrong


def test_a_good_record_is_not_refused() -> None:
    assert refusal(make_record()) is None


def test_the_default_schedule_needs_no_template() -> None:
    assert refusal(make_record(template="", decisions=())) is None
    assert refusal(make_record(template="")) == "bad digest"


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"version": 2}, "unknown version"),
        ({"version": 0}, "unknown version"),
        ({"template": "x"}, "bad digest"),
        ({"template": hexdigest("t") + "\n"}, "bad digest"),
        ({"run_nanoseconds": ()}, "bad number of times"),
        ({"run_nanoseconds": (1,) * 65}, "bad number of times"),
        ({"run_nanoseconds": (0,)}, "impossible time"),
        ({"run_nanoseconds": (-1,)}, "impossible time"),
        ({"run_nanoseconds": (10**13 + 1,)}, "impossible time"),
        ({"status": "timeout"}, "times of a failure"),
        ({"decisions": ((5, (1,)), (3, (1,)))}, "decisions out of order"),
        ({"decisions": ((3, (1,)), (3, (1,)))}, "decisions out of order"),
        ({"decisions": ((-3, (1,)),)}, "bad decision"),
        ({"decisions": ((3, ()),)}, "bad decision"),
        ({"decisions": ((3, (1,) * 33),)}, "bad decision"),
        ({"decisions": ((3, (2**53 + 1,)),)}, "decision out of range"),
        ({"decisions": ((3, (1, 0)),)}, "decision out of range"),
        ({"decisions": ((3, (4, -1)),)}, "decision out of range"),
        ({"decisions": ((3, (-3,)),)}, "decision out of range"),
        ({"decisions": tuple((i, (1,)) for i in range(257))}, "too many decisions"),
        ({"shape": WorkloadShape(hexdigest("s"), (0,))}, "bad extents"),
        ({"shape": WorkloadShape(hexdigest("s"), (2,) * 4097)}, "bad extents"),
        ({"shape": WorkloadShape("../../x", (2,))}, "bad digest"),
        ({"device": device(units=-1)}, "bad device or date"),
        ({"device": device(memory_bytes=2**60)}, "bad device or date"),
        ({"measured_at": -1}, "bad device or date"),
        ({"device": device(name="\x1b[31mred")}, "unprintable text"),
        ({"toolchain": Toolchain(tvm="0\n1", ffi="0")}, "unprintable text"),
        ({"source": Provenance(ref="refs/\u202eheads")}, "unprintable text"),
    ],
)
def test_each_rule_is_named_when_it_is_broken(changes: dict[str, object], reason: str) -> None:
    assert refusal(make_record("w", **changes)) == reason


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        (b'{"a":1,"a":2}', "duplicate key"),
        (b'{"x":{"a":1,"b":0,"a":2}}', "duplicate key"),
        (b'{"a":NaN}', "number not finite"),
        (b'{"a":-Infinity}', "number not finite"),
        (b'{"a":1e999}', "number not finite"),
        (b'{"a":9007199254740993}', "number out of range"),
        (b'{"a":[-9007199254740993]}', "number out of range"),
        (b'{"a":' + b"9" * 5000 + b"}", "number out of range"),
        (b'{"a":-' + b"9" * 5000 + b"}", "number out of range"),
        (b'{"a":-0}', "minus zero"),
        (b"[" * 9 + b"]" * 9, "nested too deep"),
        (b"[" * 60_000 + b"]" * 60_000, "nested too deep"),
        (b"{", "not JSON"),
        (b"\xff", "not JSON"),
    ],
)
def test_text_that_two_readers_could_take_differently_is_refused(text: bytes, reason: str) -> None:
    assert refusal_of_text(text) == reason


JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner),
    max_leaves=8,
)


@given(JSON)
def test_plain_json_of_few_levels_is_not_refused(content: object) -> None:
    assert refusal_of_text(json.dumps(content).encode()) in {None, "nested too deep"}
