"""Rules that leave a store alone, and ask it again."""

import threading
import time
from collections.abc import Callable, Sequence

import pytest

from tests.support.present import present
from tunegate_cache.format.cache_statistics import CacheStatistics
from tunegate_cache.stores import store
from tunegate_cache.stores.circuit_breaking_store import Breaker, CallOutcome, CircuitBreakingStore
from tunegate_cache.stores.gather_with_deadline import gather_with_deadline
from tunegate_cache.stores.memory import MemoryStore


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
        """Returns the number of requests that were sent."""
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
    assert Circuit().meet(*times(20, "failed")) == 8


def test_half_of_the_calls_failing_opens_it_and_less_does_not() -> None:
    assert Circuit().meet(*times(20, "answered", "answered", "failed")) == 60
    assert Circuit().meet(*times(20, "answered", "failed")) == 8


def test_only_the_last_sixteen_calls_count() -> None:
    circuit = Circuit()
    circuit.meet(*times(1000, "answered"))
    assert circuit.meet(*times(20, "failed")) == 8


def test_a_busy_server_counts_half_an_error() -> None:
    assert Circuit().meet(*times(20, "busy")) == 8
    assert Circuit().meet(*times(10, "busy", "busy", "busy", "answered")) == 40


def test_it_stays_open_for_a_minute_and_then_lets_one_trial_through() -> None:
    circuit = Circuit()
    circuit.meet(*times(3, "timed out"))
    circuit.clock.now += 59.9
    assert circuit.breaker.admit() is None
    circuit.clock.now += 0.2
    trial = present(circuit.breaker.admit())
    assert circuit.breaker.admit() is None
    circuit.breaker.record(trial, "answered")
    assert circuit.meet(*times(5, "answered")) == 5


def test_a_failed_trial_keeps_it_open_for_another_minute() -> None:
    for outcome in times(1, "failed", "busy", "timed out"):
        circuit = Circuit()
        circuit.meet(*times(3, "timed out"))
        circuit.clock.now += 61
        trial = present(circuit.breaker.admit())
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
    lost = present(circuit.breaker.admit())
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
    late = present(circuit.breaker.admit())
    circuit.meet(*times(3, "timed out"))
    circuit.breaker.record(late, "answered")
    assert circuit.is_open()


def test_it_says_once_that_it_opened() -> None:
    breaker = Breaker(Clock())
    tickets = [breaker.admit() for _ in range(12)]
    opened = [breaker.record(ticket, "failed") for ticket in tickets if ticket is not None]
    assert opened.count(True) == 1
    assert opened[7]


# Counting, and when a store is left alone.


class MoodyStore(MemoryStore):
    """Raises what `mood` says before every request."""

    def __init__(self) -> None:
        super().__init__()
        self.mood: Exception | None = None
        self.asked = 0

    def _ask(self) -> None:
        self.asked += 1
        if self.mood is not None:
            raise self.mood

    def read(self, name: str) -> bytes:
        self._ask()
        return super().read(name)

    def write(self, name: str, body: bytes) -> None:
        self._ask()
        super().write(name, body)

    def names(self, prefix: str) -> Sequence[str]:
        self._ask()
        return super().names(prefix)


class Guarded:
    def __init__(self) -> None:
        self.inner, self.statistics = MoodyStore(), CacheStatistics()
        self.now = 0.0
        self.store = CircuitBreakingStore(self.inner, self.statistics, lambda: self.now)

    def list_in(self, mood: Exception, times: int) -> None:
        self.inner.mood = mood
        for _ in range(times):
            with pytest.raises(store.StoreUnavailableError):
                self.store.names("")
        self.inner.mood = None


TIMED_OUT = store.StoreTimedOutError("s3://b: ReadTimeoutError")


def test_requests_and_bytes_are_counted_by_verb() -> None:
    guarded = Guarded()
    guarded.store.write("a", b"12345")
    assert guarded.store.read("a") == b"12345"
    guarded.store.names("")
    assert guarded.statistics.requests == {"put": 1, "get": 1, "list": 1}
    assert (guarded.statistics.bytes_read, guarded.statistics.bytes_written) == (5, 5)


def test_after_three_timeouts_the_verb_is_left_alone_and_the_others_are_not() -> None:
    guarded = Guarded()
    guarded.list_in(TIMED_OUT, 3)
    with pytest.raises(store.StoreUnavailableError, match="to list failed too often"):
        guarded.store.names("")
    assert guarded.inner.asked == 3
    guarded.store.write("a", b"1")
    assert guarded.store.read("a") == b"1"


def test_a_minute_later_one_request_decides() -> None:
    guarded = Guarded()
    guarded.list_in(TIMED_OUT, 3)
    guarded.now = 61.0
    guarded.list_in(TIMED_OUT, 3)
    assert guarded.inner.asked == 4
    guarded.now = 123.0
    assert list(guarded.store.names("")) == []
    assert list(guarded.store.names("")) == []


def test_other_trouble_opens_after_eight_calls() -> None:
    for trouble in (
        store.StoreUnavailableError("s3://b: 500"),
        store.StoreBusyError("s3://b: SlowDown"),
    ):
        guarded = Guarded()
        guarded.list_in(trouble, 12)
        assert guarded.inner.asked == guarded.statistics.requests["list"] == 8


def test_a_missing_name_and_a_conflict_are_answers() -> None:
    guarded = Guarded()
    guarded.store.write("a", b"1")
    for _ in range(20):
        with pytest.raises(store.ObjectNotFoundError):
            guarded.store.read("absent")
        with pytest.raises(store.ObjectConflictError):
            guarded.store.write("a", b"2")
    assert guarded.store.read("a") == b"1"


def test_a_refused_verb_is_not_asked_again_in_this_run_and_the_others_are() -> None:
    guarded = Guarded()
    guarded.inner.mood = store.AccessDeniedError("s3://b: AccessDenied")
    with pytest.raises(store.AccessDeniedError):
        guarded.store.write("a", b"1")
    guarded.inner.mood, guarded.now = None, 1e6
    with pytest.raises(store.StoreUnavailableError, match="to write was refused"):
        guarded.store.write("a", b"1")
    assert list(guarded.store.names("")) == []
    assert guarded.inner.asked == 2
    assert guarded.statistics.notes == (
        "cache: s3://b: AccessDenied; to write is not tried again in this run",
    )


def test_the_same_trouble_is_noted_once_and_so_is_what_became_of_it() -> None:
    guarded = Guarded()
    guarded.list_in(TIMED_OUT, 5)
    assert guarded.statistics.notes == (
        "cache: s3://b: ReadTimeoutError",
        "cache: to list failed too often and is left for 60 s at a time",
    )


# Requests side by side under a deadline.


def failing(error: Exception) -> Callable[[], str]:
    def request() -> str:
        raise error

    return request


def test_every_request_is_answered_once() -> None:
    requests = {number: (lambda number=number: number * 2) for number in range(100)}
    deadline = time.monotonic() + 60
    found = dict(gather_with_deadline(requests, deadline=deadline, monotonic=time.monotonic))
    assert found == {number: number * 2 for number in range(100)}


@pytest.mark.parametrize(
    "trouble", [store.ObjectNotFoundError("x"), store.StoreUnavailableError("x")]
)
def test_trouble_of_the_store_is_a_value(trouble: Exception) -> None:
    requests = {"bad": failing(trouble), "good": lambda: "answer"}
    deadline = time.monotonic() + 60
    found = dict(gather_with_deadline(requests, deadline=deadline, monotonic=time.monotonic))
    assert found == {"bad": trouble, "good": "answer"}


def test_a_bug_is_raised_where_the_answers_are_read() -> None:
    requests = {"bad": failing(TypeError("a bug"))}
    with pytest.raises(TypeError, match="a bug"):
        list(
            gather_with_deadline(requests, deadline=time.monotonic() + 60, monotonic=time.monotonic)
        )


def test_what_hangs_is_left_behind_and_what_did_not_begin_never_does() -> None:
    release, begun = threading.Event(), []

    def hang() -> None:
        begun.append(1)
        release.wait(120)

    requests = dict.fromkeys(range(50), hang)
    deadline = time.monotonic() + 0.2
    assert list(gather_with_deadline(requests, deadline=deadline, monotonic=time.monotonic)) == []
    assert time.monotonic() < deadline + 60  # they hang all the while
    release.set()
    time.sleep(0.1)
    assert len(begun) < 50


def test_a_server_that_asks_for_less_is_asked_by_fewer_at_once() -> None:
    lock, is_crowded = threading.Lock(), threading.Event()
    running, most = [0], [0]
    is_busy = [True] * 8

    def request() -> str:
        with lock:
            running[0] += 1
            most[0] = max(most[0], running[0])
            if most[0] > 8:
                is_crowded.set()
            busy = bool(is_busy) and is_busy.pop()
        is_crowded.wait(60)
        time.sleep(0.01)
        with lock:
            running[0] -= 1
            if not is_busy and not busy:
                most_after.append(running[0] + 1)
        if busy:
            raise store.StoreBusyError("slow down")
        return "answer"

    most_after: list[int] = []
    requests = dict.fromkeys(range(80), request)
    found = dict(
        gather_with_deadline(requests, deadline=time.monotonic() + 120, monotonic=time.monotonic)
    )
    assert len(found) == 80
    assert sum(isinstance(answer, store.StoreBusyError) for answer in found.values()) == 8
    assert most[0] > 8
    assert max(most_after[-20:]) <= 8
