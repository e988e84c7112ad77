"""The loss by a choice."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from research.experience.judging.regret import random_regret, regret, spread

TIMES = st.lists(st.floats(0.01, 100), min_size=2, max_size=40).map(np.array)


@given(TIMES, st.integers(1, 40))
def test_who_knows_the_times_loses_nothing(times: np.ndarray, count: int) -> None:
    assert regret(-times, times, count) == 1.0


@given(TIMES, st.integers(0, 2**32 - 1))
def test_more_picks_never_lose_more(times: np.ndarray, seed: int) -> None:
    scores = np.random.default_rng(seed).random(len(times))
    lost = [regret(scores, times, count) for count in range(1, len(times) + 1)]
    assert lost == sorted(lost, reverse=True)
    assert lost[-1] == 1.0


def test_the_worst_first_pick_loses_all_there_is_to_lose() -> None:
    times = np.array([1.0, 2.0, 4.0])
    assert regret(times, times, 1) == 4.0
    assert regret(times, times, 2) == 2.0


def test_a_random_pick_loses_the_geometric_mean() -> None:
    assert random_regret(np.array([1.0, 4.0]), 1) == pytest.approx(2.0, rel=0.1)
    assert random_regret(np.array([1.0, 4.0]), 2) == 1.0


def test_the_interval_holds_the_median() -> None:
    found = spread(np.array([1.0, 1.0, 2.0, 8.0]))
    assert found.median == 1.5
    assert found.mean == pytest.approx(2.0)
    assert 1.0 <= found.low <= found.median <= found.high <= 8.0
