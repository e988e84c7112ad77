from __future__ import annotations

import time
from collections.abc import Callable

import pytest

from tunegate.edges.metaschedule.parts.race import pays


def sleeping(milliseconds: float) -> Callable[[], None]:
    return lambda: time.sleep(milliseconds / 1e3)


def computing(steps: int) -> Callable[[], None]:
    def compute() -> None:
        for _ in range(steps):
            pass

    return compute


@pytest.mark.parametrize(("way", "threads"), [(computing, 1), (sleeping, 2)])
def test_the_faster_way_pays_and_the_slower_does_not(
    way: Callable[[int], Callable[[], None]], threads: int
) -> None:
    few, many = (1, 3) if way is sleeping else (20_000, 60_000)
    assert pays(way(few), way(many), threads)
    assert not pays(way(many), way(few), threads)


def test_a_way_of_one_thread_does_not_pay_by_waiting_less() -> None:
    def work_and_wait() -> None:
        computing(20_000)()
        time.sleep(0.005)

    assert not pays(computing(60_000), work_and_wait, 1)
