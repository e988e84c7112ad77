from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from tests.support import report_parts as parts
from tunegate.artifacts.plans import Cost
from tunegate.report.sentences import cache_traffic, cache_words


def test_what_the_cache_had_is_told_in_the_counts_of_the_verdict() -> None:
    tuning = parts.summary(tasks=31, exact=16, transfer=13, unfinished=2, miss=2)
    told = cache_words(tuning, parts.cache(exact=7, misses={"absent": 2}), Cost(seconds=600.0))
    assert told == (
        "16 of 31 tasks were known before; of the other 15: 2 begun by an earlier run, "
        "11 with schedules of other shapes, 2 unknown (2 absent). "
        "Tuning these 16 took 10 min or more, by the records."
    )


def test_what_was_tuned_before_has_a_price_where_the_target_has_one() -> None:
    tuning = parts.summary(tasks=1, exact=1)
    told = cache_words(tuning, parts.cache(), Cost(seconds=90.0, usd=0.5))
    assert told == (
        "1 of 1 task was known before. Tuning it took 1 min 30 s (0.5000 USD) or more, by the "
        "records."
    )


def test_a_cache_that_was_asked_for_nothing_says_nothing_of_tasks() -> None:
    assert cache_words(parts.summary(tasks=0, exact=0), parts.cache(), Cost(seconds=9.0)) == ""


def test_the_traffic_of_a_store_without_prices_has_none() -> None:
    told = cache_traffic(parts.cache(requests=1, bytes_read=0, seconds=5.0, usd=None))
    assert told == "1 request, 0 B, 5.0 s"


@given(
    exact=st.integers(0, 99),
    unfinished=st.integers(0, 99),
    near=st.integers(0, 99),
    miss=st.integers(0, 99),
)
def test_the_numbers_add_up_to_all_tasks(exact: int, unfinished: int, near: int, miss: int) -> None:
    tasks = exact + unfinished + near + miss
    tuning = parts.summary(
        tasks=tasks, exact=exact, transfer=near + unfinished, unfinished=unfinished, miss=miss
    )
    told = cache_words(tuning, parts.cache(), None)
    words = told.replace("(", "").replace(":", "").split()
    counts = [int(word) for word in words if word.isdigit()]
    told_of_others = tasks - exact
    beginning = [exact, tasks] if exact else [tasks]
    if tasks:
        assert counts[: len(beginning)] == beginning
        times = 2 if exact else 1
        assert sum(counts[len(beginning) :]) == times * told_of_others
