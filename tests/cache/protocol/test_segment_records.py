from __future__ import annotations

from collections.abc import Callable

from tests.cache.format.test_signing import KEYS, OURS
from tests.support.compacted_place import NOBODY
from tests.support.tuning_records import TARGET, hexdigest, make_key, make_record
from tunegate_cache.format.cache_statistics import CacheStatistics
from tunegate_cache.format.names import SegmentName, segment_name
from tunegate_cache.format.records import TuningRecord
from tunegate_cache.format.revocation import Revocation
from tunegate_cache.format.segment import pack_segment, segment_digest, signed
from tunegate_cache.format.signing import TrustedKeys
from tunegate_cache.protocol.read_trouble import ReadTrouble
from tunegate_cache.protocol.segment_records import usable_records
from tunegate_cache.protocol.target_requests import TargetRequests

RECORDS = tuple(make_record(name, measured_at=100 + n) for n, name in enumerate("abc"))
BODY = pack_segment(RECORDS)


class Reader:
    """Reads segments for one target, and keeps what went wrong."""

    def __init__(self, clock: Callable[[], float] = lambda: 0.0) -> None:
        self.statistics = CacheStatistics()
        self.trouble = ReadTrouble(self.statistics)
        self.requests = TargetRequests(
            target=TARGET, deadline=5.0, monotonic=clock, trouble=self.trouble.of(TARGET)
        )

    def read(
        self,
        body: bytes = BODY,
        *,
        keys: TrustedKeys = NOBODY,
        revoked: tuple[Revocation, ...] = (),
        name: SegmentName | None = None,
    ) -> list[TuningRecord]:
        name = name or name_of(body)
        return list(usable_records(name, body, keys, self.requests, revoked))


def name_of(body: bytes) -> SegmentName:
    digest = segment_digest(body)
    return segment_name("main", TARGET, milliseconds=1, writer="0" * 8, digest=digest)


def test_every_record_of_a_sound_segment_is_used() -> None:
    assert tuple(Reader().read()) == RECORDS


def test_a_damaged_segment_is_trouble_and_gives_nothing() -> None:
    reader = Reader()
    assert reader.read(b"garbage", name=name_of(BODY)) == []
    assert reader.statistics.corrupt_segments == 1


def test_a_segment_that_nobody_trusted_has_signed_gives_nothing() -> None:
    reader = Reader()
    assert reader.read(keys=KEYS) == []
    assert reader.statistics.untrusted == 1
    name = name_of(BODY)
    by_us = signed(BODY, OURS.sign(name.name, name.digest))
    assert tuple(Reader().read(by_us, keys=KEYS, name=name)) == RECORDS


def test_what_was_revoked_is_not_used_and_no_trouble() -> None:
    reader = Reader()
    assert reader.read(revoked=(Revocation(since=101),)) == [RECORDS[0]]
    assert reader.trouble.miss_reason("w", TARGET) == "absent"


def test_a_record_of_another_target_is_refused_in_a_segment_of_this_one() -> None:
    stray = make_record(key=make_key("stray", hexdigest("another target")))
    reader = Reader()
    assert reader.read(pack_segment([stray, RECORDS[0]])) == [RECORDS[0]]
    assert reader.statistics.refused == {"another target": 1}


def test_reading_ends_with_the_time() -> None:
    ticks = iter([0.0, 9.0, 9.0, 9.0])
    reader = Reader(lambda: next(ticks))
    assert reader.read() == list(RECORDS[:2])
    assert reader.trouble.miss_reason("w", TARGET) == "store-unavailable"
