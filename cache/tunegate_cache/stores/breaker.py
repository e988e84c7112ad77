"""Decides when to leave a failing store alone, and when to try it again."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import Literal

CallOutcome = Literal["answered", "busy", "failed", "timed out"]

OPEN_SECONDS = 60.0
_ERRORS: dict[CallOutcome, float] = {"answered": 0.0, "busy": 0.5, "failed": 1.0, "timed out": 1.0}
_MIN_CALLS, _REMEMBERED_CALLS, _SHARE_OF_ERRORS = 8, 16, 0.5
_TIMEOUTS_IN_A_ROW = 3


class Breaker:
    """A breaker for one kind of request. It opens after three time-outs in a row, or if half of the
    last sixteen calls (at least eight) are errors; a server that asks for less counts as half an
    error. Once open it admits one trial per minute, and closes when a trial is answered.

    Calls begun before a change of state say nothing about the state after it. Use it under a lock
    of its owner.
    """

    def __init__(self, monotonic: Callable[[], float]) -> None:
        self._monotonic = monotonic
        self._recent: deque[CallOutcome] = deque(maxlen=_REMEMBERED_CALLS)
        self._next_trial: float | None = None
        self._ticket = 0

    def admit(self) -> int | None:
        """Returns a ticket to hand to `record`, None if the request must not be sent."""
        if self._next_trial is None:
            return self._ticket
        if self._monotonic() < self._next_trial:
            return None
        self._open()
        return self._ticket

    def record(self, ticket: int, outcome: CallOutcome) -> bool:
        """Records the outcome of an admitted request, and returns whether this opened the
        breaker."""
        if ticket != self._ticket:
            return False
        if self._next_trial is None:
            self._recent.append(outcome)
            if self._is_in_trouble():
                self._open()
                return True
        elif outcome == "answered":
            self._close()
        else:
            self._open()
        return False

    def _is_in_trouble(self) -> bool:
        last = list(self._recent)[-_TIMEOUTS_IN_A_ROW:]
        if last == ["timed out"] * _TIMEOUTS_IN_A_ROW:
            return True
        errors = sum(_ERRORS[outcome] for outcome in self._recent)
        calls = len(self._recent)
        return calls >= _MIN_CALLS and errors >= _SHARE_OF_ERRORS * calls

    def _open(self) -> None:
        """Opens the breaker for a minute; a trial that never returns costs no more than that."""
        self._ticket += 1
        self._next_trial = self._monotonic() + OPEN_SECONDS

    def _close(self) -> None:
        self._ticket += 1
        self._next_trial = None
        self._recent.clear()
