from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tunegate.system.processes.conversations import MOST_WAITED, is_time_up, waited_for_core

SECONDS = st.floats(0, 1e5)


def test_the_thread_that_waited_longest_counts(tmp_path: Path) -> None:
    for thread, text in (("7", "1 2000000000 3"), ("8", "9 500000000 3"), ("9", "no number")):
        (tmp_path / "7" / "task" / thread).mkdir(parents=True)
        (tmp_path / "7" / "task" / thread / "schedstat").write_text(text)
    assert waited_for_core(7, tmp_path) == 2.0


def test_a_process_that_is_gone_waits_for_nothing(tmp_path: Path) -> None:
    assert waited_for_core(7, tmp_path) == 0.0
    assert waited_for_core(os.getpid()) >= 0.0


@pytest.mark.parametrize(
    ("elapsed", "waited", "is_up"),
    [(299, 0, False), (300, 0, True), (310, 250, False), (560, 250, True), (1200, 5000, True)],
)
def test_waiting_for_a_core_is_no_time_of_the_work(
    elapsed: float, waited: float, *, is_up: bool
) -> None:
    assert is_time_up(elapsed, 300, waited) == is_up


@given(SECONDS, st.floats(0.1, 1e4), SECONDS)
def test_every_limit_has_an_end_and_none_comes_sooner(
    elapsed: float, limit: float, waited: float
) -> None:
    is_up = is_time_up(elapsed, limit, waited)
    assert not is_up or elapsed >= limit
    assert is_up or elapsed < (1 + MOST_WAITED) * limit * (1 + 1e-9)
    assert is_time_up(elapsed, limit, 0.0) or not is_up
