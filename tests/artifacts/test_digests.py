from __future__ import annotations

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from tunegate.artifacts.artifact_io import digest_of, document_of


class Sample(msgspec.Struct, frozen=True):
    seconds: float
    names: tuple[str, ...] = ()
    parts: dict[str, float] = {}


SAMPLES = st.builds(
    Sample,
    seconds=st.one_of(st.integers(-9, 9), st.floats(allow_nan=False, allow_infinity=False)),
    names=st.lists(st.text()).map(tuple),
    parts=st.dictionaries(st.text(), st.integers(-9, 9)),
)


@given(SAMPLES)
def test_what_went_through_a_file_has_the_same_digest(sample: Sample) -> None:
    read = msgspec.json.decode(msgspec.json.encode(sample), type=Sample)
    assert digest_of(read) == digest_of(sample)


@given(SAMPLES, SAMPLES)
def test_other_contents_have_other_digests(one: Sample, other: Sample) -> None:
    assert (digest_of(one) == digest_of(other)) == (document_of(one) == document_of(other))


def test_the_order_of_keys_does_not_count() -> None:
    one = Sample(1.0, parts={"a": 1.0, "b": 2.0})
    assert digest_of(one) == digest_of(Sample(1.0, parts={"b": 2.0, "a": 1.0}))


def test_an_infinity_has_a_digest_too() -> None:
    assert digest_of(Sample(float("inf"))) != digest_of(Sample(1.0))
