from __future__ import annotations

from tunegate_cache.format.cache_statistics import CacheStatistics
from tunegate_cache.format.refused_line import RefusedLine
from tunegate_cache.protocol.read_trouble import ReadTrouble


def test_without_trouble_a_task_is_absent() -> None:
    assert ReadTrouble(CacheStatistics()).miss_reason("w", "t") == "absent"


def test_trouble_of_a_target_is_no_reason_for_another() -> None:
    trouble = ReadTrouble(CacheStatistics())
    trouble.of("t").unavailable()
    assert trouble.miss_reason("w", "t") == "store-unavailable"
    assert trouble.miss_reason("w", "another") == "absent"


def test_what_was_not_read_in_time_could_have_been_an_answer() -> None:
    statistics = CacheStatistics()
    trouble = ReadTrouble(statistics)
    trouble.of("late").late()
    trouble.of("many").uncompacted(9)
    assert {trouble.miss_reason("w", name) for name in ("late", "many")} == {"store-unavailable"}
    late, many = statistics.notes
    assert "could be read in time" in late
    assert "9 segments" in many
    assert "tunegate cache compact" in many


def test_a_refused_record_is_the_reason_of_its_workload_alone() -> None:
    statistics = CacheStatistics()
    trouble = ReadTrouble(statistics)
    trouble.of("t").refused(RefusedLine("another target", "w"))
    trouble.refused(RefusedLine("too fast", "x"), 3)
    assert statistics.refused == {"another target": 1, "too fast": 3}
    assert trouble.miss_reason("w", "t") == "rejected"
    assert trouble.miss_reason("v", "t") == "absent"


def test_corrupt_and_unsigned_objects_are_counted_apart_and_named() -> None:
    statistics = CacheStatistics()
    trouble = ReadTrouble(statistics)
    trouble.of("t").corrupt("segment a", "cut short")
    trouble.of("u").unsigned("segment b")
    assert (statistics.corrupt_segments, statistics.untrusted) == (1, 1)
    assert "segment a is corrupt (cut short)" in statistics.notes[0]
    assert "segment b is not signed" in statistics.notes[1]
    assert {trouble.miss_reason("w", name) for name in "tu"} == {"corrupt"}


def test_a_store_that_did_not_answer_is_the_likeliest_reason_of_all() -> None:
    trouble = ReadTrouble(CacheStatistics())
    trouble.of("t").corrupt("segment a", "cut short")
    trouble.refused(RefusedLine("too fast", "w"))
    assert trouble.miss_reason("w", "t") == "rejected"
    trouble.of("t").unavailable()
    assert trouble.miss_reason("w", "t") == "store-unavailable"
