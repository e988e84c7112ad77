from __future__ import annotations

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.tuning_tasks import make_record
from tunegate_cache.format.how_built import (
    MOST_DECISIONS,
    MOST_NODES,
    HowBuilt,
    decisions_of,
    how_built,
    mark_of,
)
from tunegate_cache.format.record_codec import decode_records, encode_record
from tunegate_cache.format.records import Decision, TuningRecord

PLACES = st.sets(st.integers(0, MOST_NODES - 1), max_size=40)
DIGESTS = st.sets(st.text("0123456789abcdef", min_size=64, max_size=64), max_size=40)


@given(PLACES, DIGESTS)
def test_what_is_written_is_read_again_out_of_a_record(places: set[int], digests: set[str]) -> None:
    marks = {mark_of(digest) for digest in digests}
    how = HowBuilt(compiled=tuple(sorted(places)), kept=tuple(sorted(marks)))
    decisions = decisions_of(how)
    assert decisions is not None
    record = msgspec.structs.replace(make_record(), decisions=decisions)
    read = decode_records(encode_record(record))
    assert isinstance(read, TuningRecord)
    assert how_built(read.decisions) == (how if places or digests else None)


def test_neighbours_are_one_decision() -> None:
    assert decisions_of(HowBuilt(compiled=(4, 5, 6, 9))) == ((4, (3,)), (9, (1,)))


def test_more_than_a_record_has_room_for_is_not_remembered() -> None:
    assert decisions_of(HowBuilt(compiled=tuple(range(0, 2 * MOST_DECISIONS, 2)))) is not None
    assert decisions_of(HowBuilt(compiled=tuple(range(0, 2 * MOST_DECISIONS + 2, 2)))) is None


@pytest.mark.parametrize(
    "decisions",
    [
        (),
        ((0, (2**53,)),),
        ((MOST_NODES, (1,)),),
        ((0, (3,)), (2, (1,))),
        ((0, (0,)),),
        ((0, (1, 1)),),
        ((mark_of("a" * 64), (1,)),),
    ],
)
def test_decisions_that_no_build_makes_say_nothing(decisions: tuple[Decision, ...]) -> None:
    assert how_built(decisions) is None
