from __future__ import annotations

import random

from tunegate.edges.metaschedule.surrogate import Surrogate
from tunegate.tuning.candidate_filter import LEAST_EVIDENCE, rank_correlation


def fitted(count: int, milliseconds: object = None, seed: int = 1) -> Surrogate:
    chance = random.Random(seed)
    surrogate = Surrogate()
    for _ in range(count):
        row = [chance.uniform(0, 6) for _ in range(8)]
        surrogate.add(row, slow(row) if milliseconds is None else chance.uniform(1, 9))
    return surrogate


def slow(row: list[float]) -> float:
    return 0.1 + (row[0] - 3) ** 2 + 0.5 * abs(row[1] - 2)


def drafts(count: int = 200) -> list[list[float]]:
    chance = random.Random(99)
    return [[chance.uniform(0, 6) for _ in range(8)] for _ in range(count)]


def test_it_says_nothing_before_there_is_evidence() -> None:
    assert fitted(LEAST_EVIDENCE - 1).scores(drafts()) is None


def test_it_ranks_what_it_has_not_seen() -> None:
    surrogate = fitted(64)
    scores = surrogate.scores(drafts())
    assert scores is not None
    assert surrogate.evidence > 0.4
    assert rank_correlation(scores, [-slow(row) for row in drafts()]) > 0.4


def test_times_that_mean_nothing_are_no_evidence() -> None:
    trusted = sum(fitted(48, "noise", seed).scores(drafts()) is not None for seed in range(20))
    assert trusted <= 4


def test_where_candidates_fail_is_learned_too() -> None:
    surrogate = Surrogate()
    chance = random.Random(1)
    for _ in range(48):
        row = [chance.uniform(0, 6) for _ in range(8)]
        surrogate.add(row, None if row[2] > 3 else 1.0)
    scores = surrogate.scores(drafts())
    assert scores is not None
    works = [score for score, row in zip(scores, drafts(), strict=True) if row[2] < 2]
    fails = [score for score, row in zip(scores, drafts(), strict=True) if row[2] > 4]
    assert min(works) > max(fails)


def test_nothing_that_works_is_no_evidence() -> None:
    surrogate = Surrogate()
    for row in drafts(32):
        surrogate.add(row, None)
    assert surrogate.scores(drafts()) is None
