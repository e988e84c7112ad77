from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support import report_parts as parts
from tunegate.artifacts.inputs import (
    Columns,
    Constant,
    Drawn,
    DrawnInput,
    Files,
    InputRule,
    Integers,
    Normal,
    OneOf,
    Uniform,
)
from tunegate.report.report_tables import values_in_words
from tunegate.report.sentences import cache_traffic, cache_words, tuning_words


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        (
            {"tasks": 2, "exact": 1, "tuned": 1, "trials": 1, "seconds": 2.0, "usd": 0.5},
            (
                "1 trial in 2.0 s, 0.5000 USD, ended early: nothing more to try. "
                "Of 2 tasks: 1 known before, 1 tuned now"
            ),
        ),
        (
            {"tasks": 1, "exact": 0, "tuned": 1, "trials": 9, "stopped": "converged"},
            (
                "9 trials in 0 s, ended early: no task promised "
                "budget.min-gain-percent-per-minute any more. Of 1 task: 1 tuned now"
            ),
        ),
        (
            {"tasks": 1, "exact": 1},
            "no trial, nothing to tune. The only task was known before",
        ),
        ({"tasks": 4, "exact": 4}, "no trial, nothing to tune. All 4 tasks were known before"),
        (
            {"tasks": 3, "exact": 0, "begun": 2, "trials": 4, "stopped": "usd", "joules": 9.0},
            "4 trials in 0 s, 9 J, money budget spent. Of 3 tasks: 2 begun, 1 not tuned",
        ),
        (
            {"tasks": 3, "exact": 1, "miss": 2, "waiting": 2},
            "no trial, nothing to tune. Of 3 tasks: 1 known before, 2 left to tunegate warm",
        ),
        (
            {"tasks": 9, "exact": 1, "transfer": 6, "miss": 2, "waiting": 2, "stopped": "usd"},
            (
                "no trial, no budget for a trial. Of 9 tasks: 1 known before, 2 left to tunegate "
                "warm, 6 not tuned"
            ),
        ),
        ({"tasks": 0, "exact": 0}, "nothing here is compiled"),
    ],
)
def test_what_tuning_did_is_one_sentence_and_the_rest_another(
    fields: dict[str, float], said: str
) -> None:
    assert tuning_words(parts.summary(**fields)) == said


def test_what_the_cache_had_is_told_in_the_counts_of_the_verdict() -> None:
    tuning = parts.summary(tasks=31, exact=16, transfer=13, unfinished=2, miss=2)
    told = cache_words(tuning, parts.cache(exact=7, misses={"absent": 2}))
    assert told == (
        "16 of 31 tasks were known before; of the other 15: 2 begun by an earlier run, "
        "11 with schedules of other shapes, 2 unknown (2 absent)."
    )


def test_a_cache_that_was_asked_for_nothing_says_nothing_of_tasks() -> None:
    assert cache_words(parts.summary(tasks=0, exact=0), parts.cache()) == ""


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
    told = cache_words(tuning, parts.cache())
    words = told.replace("(", "").replace(":", "").split()
    counts = [int(word) for word in words if word.isdigit()]
    told_of_others = tasks - exact
    beginning = [exact, tasks] if exact else [tasks]
    if tasks:
        assert counts[: len(beginning)] == beginning
        times = 2 if exact else 1
        assert sum(counts[len(beginning) :]) == times * told_of_others


@pytest.mark.parametrize(
    ("values", "words"),
    [
        (Normal(), "standard normal"),
        (Normal(123.675, 58.395), "normal, 123.7 ± 58.4"),
        (Uniform(0.0, 255.0), "0 to 255"),
        (Integers(0, 30521), "0 to 30521"),
        (Constant(16000), "always 16000"),
        (OneOf(("a", "b")), "one of a, b"),
        (OneOf(tuple("abcdef")), "one of a, b, c, d and 2 more"),
        (OneOf(("a",), words=8), "words of a"),
        (
            Columns(1, (Integers(0, 2), Integers(0, 2), Normal())),
            "column 0 to 1: 0 to 2; column 2: standard normal",
        ),
        (Files(("x.npy",)), "the array of a file"),
        (Files(("x.npy", "z.npy")), "2 cases, one in each launch"),
    ],
)
def test_values_are_told_in_a_few_words(values: Drawn, words: str) -> None:
    assert values_in_words(DrawnInput("x", (1,), "int64", InputRule(values))) == words
