from __future__ import annotations

import random
from itertools import islice

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from tunegate.tune.candidate_filter import AUDIT_SHARE, Pick, picks, rank_correlation

numbers = st.lists(st.integers(-20, 20).map(float), min_size=3, max_size=40)


@given(st.none() | numbers, st.integers(1, 40), st.integers(0, 50), st.integers(0, 2**32))
def test_every_sample_is_picked_once(
    scores: list[float] | None, kinds: int, wanted: int, seed: int
) -> None:
    samples = 12 if scores is None else len(scores)
    alike = [number % kinds for number in range(samples)]
    found = list(picks(scores, alike, wanted, random.Random(seed)))
    assert sorted(pick.sample for pick in found) == list(range(samples))


def test_without_scores_the_order_is_random_and_says_so() -> None:
    found = list(picks(None, range(50), 8, random.Random(1)))
    assert {pick.reason for pick in found} == {"random"}
    assert [pick.sample for pick in found] != sorted(pick.sample for pick in found)


def test_the_best_come_first_with_a_few_of_the_rejected_between_them() -> None:
    scores = [float(n) for n in range(500)]
    batches = [list(islice(picks(scores, range(500), 8, random.Random(s)), 8)) for s in range(400)]
    audits = [pick for batch in batches for pick in batch if pick.reason == "audit"]
    assert 0.7 * AUDIT_SHARE < len(audits) / 3200 < 1.3 * AUDIT_SHARE
    assert all(pick.sample < 492 for pick in audits)
    predicted = [[p.sample for p in batch if p.reason == "predicted"] for batch in batches]
    assert all(best == list(range(499, 499 - len(best), -1)) for best in predicted)


def test_the_first_of_a_batch_is_the_best_by_its_score() -> None:
    scores = [float(n) for n in range(100)]
    firsts = {next(picks(scores, range(100), 1, random.Random(seed))) for seed in range(100)}
    assert firsts == {Pick(99, "predicted")}


def test_audited_samples_are_spread_over_all_that_was_rejected() -> None:
    scores = [float(n) for n in range(100)]
    rng = random.Random(1)
    audits = [p.sample for _ in range(2000) for p in islice(picks(scores, range(100), 8, rng), 8)]
    middle = [sample for sample in audits if sample < 92]
    assert 40 < sum(middle) / len(middle) < 51


def test_of_samples_that_are_alike_a_batch_takes_the_best_only() -> None:
    scores = [float(n) for n in range(100)]
    tens = [n // 10 for n in range(100)]
    batches = [list(islice(picks(scores, tens, 4, random.Random(s)), 4)) for s in range(50)]
    predicted = [[p.sample for p in batch if p.reason == "predicted"] for batch in batches]
    assert all(best == [99, 89, 79, 69][: len(best)] for best in predicted)
    assert any(len(best) == 4 for best in predicted)


def test_nothing_left_to_reject_ends_with_the_kept() -> None:
    assert list(picks([1.0, 2.0], range(2), 8, random.Random(1))) == [
        Pick(1, "predicted"),
        Pick(0, "predicted"),
    ]


@given(numbers, st.integers(0, 2**32))
def test_the_rank_correlation_is_spearmans(values: list[float], seed: int) -> None:
    other = random.Random(seed).sample(values, len(values))
    expected = stats.spearmanr(values, other).statistic if len(set(values)) > 1 else 0.0
    assert rank_correlation(values, other) == pytest.approx(expected, abs=1e-9)
