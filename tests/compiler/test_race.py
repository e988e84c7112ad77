from __future__ import annotations

from collections.abc import Callable

import pytest

from tunegate.compiler import loader as race
from tunegate.compiler.loader import pays, raced


class HandTime:
    """The clocks of a machine with nothing else to do, in seconds."""

    def __init__(self) -> None:
        self.computed = self.waited = 0.0

    def process_time(self) -> float:
        return self.computed

    def perf_counter(self) -> float:
        return self.computed + self.waited

    def way(self, *, computes_ms: float = 0.0, waits_ms: float = 0.0) -> Callable[[], None]:
        def run() -> None:
            self.computed += computes_ms / 1e3
            self.waited += waits_ms / 1e3

        return run


@pytest.fixture
def hand(monkeypatch: pytest.MonkeyPatch) -> HandTime:
    made = HandTime()
    monkeypatch.setattr(race, "time", made)
    return made


@pytest.mark.parametrize(("spent", "threads"), [("computes_ms", 1), ("waits_ms", 2)])
def test_the_faster_way_pays_and_the_slower_does_not(
    hand: HandTime, spent: str, threads: int
) -> None:
    few, many = hand.way(**{spent: 1.0}), hand.way(**{spent: 1.1})
    assert pays(few, many, threads)
    assert not pays(many, few, threads)
    assert not pays(hand.way(**{spent: 0.99}), few, threads)


def test_a_way_of_one_thread_does_not_pay_by_waiting_less(hand: HandTime) -> None:
    computes, waits_too = hand.way(computes_ms=3.0), hand.way(computes_ms=1.0, waits_ms=5.0)
    assert not pays(computes, waits_too, 1)
    assert pays(computes, waits_too, 2)


def test_a_race_ends_after_half_a_second(hand: HandTime) -> None:
    raced(hand.way(computes_ms=1.0), hand.way(computes_ms=1.0), 1)
    assert 0.5 < hand.computed < 0.6


def test_what_takes_longer_than_that_has_five_rounds(hand: HandTime) -> None:
    calls = [0]

    def long() -> None:
        calls[0] += 1
        hand.computed += 2.0

    raced(long, hand.way(computes_ms=1.0), 1)
    assert calls[0] == 3 + 5


def test_by_the_clocks_of_this_machine_ten_times_the_work_takes_longer() -> None:
    def counting(steps: int) -> Callable[[], None]:
        def count() -> None:
            for _ in range(steps):
                pass

        return count

    ours, theirs = raced(counting(5_000), counting(50_000), 1)
    assert 0 < ours < theirs
