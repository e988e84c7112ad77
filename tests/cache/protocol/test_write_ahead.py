"""Records that wait for a store to come back."""

from __future__ import annotations

from pathlib import Path

from tests.support.tuning_records import TARGET, make_record
from tunegate_cache.format import segment
from tunegate_cache.format.names import SegmentName, segment_name
from tunegate_cache.protocol.write_ahead import Pending, WriteAhead

BODY = segment.pack_segment([make_record()])


def name(milliseconds: int = 1, zone: str = "main", body: bytes = BODY) -> SegmentName:
    return segment_name(
        zone,
        TARGET,
        milliseconds=milliseconds,
        writer="0" * 8,
        digest=segment.segment_digest(body),
    )


def test_what_is_kept_is_pending_until_it_is_forgotten(tmp_path: Path) -> None:
    assert WriteAhead(tmp_path).keep(name(2), BODY)
    assert WriteAhead(tmp_path).keep(name(1), BODY)
    pending = list(WriteAhead(tmp_path).pending("main"))
    assert pending == [Pending(name(1), BODY), Pending(name(2), BODY)]
    WriteAhead(tmp_path).forget(name(1))
    assert list(WriteAhead(tmp_path).pending("main")) == [Pending(name(2), BODY)]


def test_another_zone_has_its_own(tmp_path: Path) -> None:
    WriteAhead(tmp_path).keep(name(zone="pr/o/r/7"), BODY)
    assert list(WriteAhead(tmp_path).pending("main")) == []
    assert len(list(WriteAhead(tmp_path).pending("pr/o/r/7"))) == 1


def test_a_damaged_file_is_dropped(tmp_path: Path) -> None:
    WriteAhead(tmp_path).keep(name(body=b"other"), BODY)
    assert list(WriteAhead(tmp_path).pending("main")) == []
    assert [path for path in tmp_path.rglob("*") if path.is_file()] == []


def test_an_unusable_directory_loses_the_net_and_says_so(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"")
    waiting = WriteAhead(tmp_path / "file")
    assert not waiting.keep(name(), BODY)
    assert list(waiting.pending("main")) == []
    waiting.forget(name())
