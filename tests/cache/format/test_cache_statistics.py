from __future__ import annotations

from tunegate_cache.format.cache_statistics import CacheStatistics


def test_a_line_is_shown_once_and_in_the_order_of_its_first_time() -> None:
    statistics = CacheStatistics()
    for text in ("the bucket is slow", "a segment is corrupt", "the bucket is slow"):
        statistics.note(text)
    assert statistics.notes == ("the bucket is slow", "a segment is corrupt")


def test_a_run_begins_with_nothing_counted() -> None:
    first, second = CacheStatistics(), CacheStatistics()
    first.requests["get"] += 1
    first.note("a line")
    assert (second.requests.total(), second.notes, second.seconds) == (0, (), 0.0)
