"""Rules that leave a store alone, and ask it again."""

from __future__ import annotations

from tunegate_cache.stores.breaker import Breaker, CallOutcome


def times(number: int, *outcomes: CallOutcome) -> tuple[CallOutcome, ...]:
    return outcomes * number


class Clock:
    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


class Circuit:
    def __init__(self) -> None:
        self.clock = Clock()
        self.breaker = Breaker(self.clock)

    def meet(self, *outcomes: CallOutcome) -> int:
        """How many of the requests were sent."""
        sent = 0
        for outcome in outcomes:
            ticket = self.breaker.admit()
            if ticket is not None:
                sent += 1
                self.breaker.record(ticket, outcome)
        return sent

    def is_open(self) -> bool:
        return self.meet("answered") == 0


def test_answers_keep_it_closed() -> None:
    assert Circuit().meet(*times(100, "answered")) == 100


def test_three_timeouts_in_a_row_open_it() -> None:
    circuit = Circuit()
    assert circuit.meet(*times(10, "timed out")) == 3
    assert circuit.is_open()


def test_an_answer_between_timeouts_starts_their_count_again() -> None:
    circuit = Circuit()
    assert circuit.meet("timed out", "timed out", "answered", "timed out", "timed out") == 5
    assert not circuit.is_open()


def test_seven_errors_are_too_few_to_judge_and_eight_are_enough() -> None:
    circuit = Circuit()
    assert circuit.meet(*times(20, "failed")) == 8


def test_half_of_the_calls_failing_opens_it_and_less_does_not() -> None:
    below = Circuit()
    assert below.meet(*times(20, "answered", "answered", "failed")) == 60
    half = Circuit()
    assert half.meet(*times(20, "answered", "failed")) == 8


def test_only_the_last_sixteen_calls_count() -> None:
    circuit = Circuit()
    circuit.meet(*times(1000, "answered"))
    assert circuit.meet(*times(20, "failed")) == 8


def test_a_busy_server_counts_half_an_error() -> None:
    assert Circuit().meet(*times(20, "busy")) == 8
    some = Circuit()
    assert some.meet(*times(10, "busy", "busy", "busy", "answered")) == 40


def test_it_stays_open_for_a_minute_and_then_lets_one_trial_through() -> None:
    circuit = Circuit()
    circuit.meet(*times(3, "timed out"))
    circuit.clock.now += 59.9
    assert circuit.breaker.admit() is None
    circuit.clock.now += 0.2
    trial = circuit.breaker.admit()
    assert trial is not None
    assert circuit.breaker.admit() is None
    circuit.breaker.record(trial, "answered")
    assert circuit.meet(*times(5, "answered")) == 5


def test_a_failed_trial_keeps_it_open_for_another_minute() -> None:
    for outcome in times(1, "failed", "busy", "timed out"):
        circuit = Circuit()
        circuit.meet(*times(3, "timed out"))
        circuit.clock.now += 61
        trial = circuit.breaker.admit()
        assert trial is not None
        circuit.clock.now += 30
        circuit.breaker.record(trial, outcome)
        circuit.clock.now += 59
        assert circuit.breaker.admit() is None
        circuit.clock.now += 2
        assert circuit.breaker.admit() is not None


def test_a_trial_that_never_comes_back_does_not_keep_it_open_for_ever() -> None:
    circuit = Circuit()
    circuit.meet(*times(3, "timed out"))
    circuit.clock.now += 61
    lost = circuit.breaker.admit()
    assert lost is not None
    circuit.clock.now += 61
    assert circuit.meet("answered") == 1
    circuit.breaker.record(lost, "timed out")
    assert not circuit.is_open()


def test_after_it_closes_old_errors_are_forgotten() -> None:
    circuit = Circuit()
    circuit.meet(*times(8, "failed"))
    circuit.clock.now += 61
    assert circuit.meet("answered", *times(7, "failed"), "answered") == 9


def test_a_late_answer_to_an_old_request_does_not_close_it() -> None:
    circuit = Circuit()
    late = circuit.breaker.admit()
    assert late is not None
    circuit.meet(*times(3, "timed out"))
    circuit.breaker.record(late, "answered")
    assert circuit.is_open()


def test_it_says_once_that_it_opened() -> None:
    breaker = Breaker(Clock())
    tickets = [breaker.admit() for _ in range(12)]
    opened = [breaker.record(ticket, "failed") for ticket in tickets if ticket is not None]
    assert opened.count(True) == 1
    assert opened[7]
