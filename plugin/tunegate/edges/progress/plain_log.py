"""Progress as plain lines: one for each step, and a sign of life in each silence."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from typing import Protocol

from tunegate.artifacts.expected_steps import ExpectedStep, StepKind
from tunegate.edges.progress.time_left import TimeLeft
from tunegate.edges.progress.words import plan_line, time_left

MAX_SILENT_SECONDS = 10.0


class Lines(Protocol):
    """A sink for the lines of a log."""

    def write(self, text: str, /) -> object: ...
    def flush(self) -> None: ...


class PlainLog:
    """One line per step with the seconds since the start; updates are thinned out, so that a long
    step shows life and does not fill the log."""

    def __init__(
        self,
        stream: Lines,
        clock: Callable[[], float] = time.monotonic,
        update_seconds: float = MAX_SILENT_SECONDS,
    ) -> None:
        self._stream = stream
        self._clock = clock
        self._update_seconds = update_seconds
        self._started = self._shown = self._entered = clock()
        self._text = ""
        self._left = TimeLeft()
        self._lock = threading.RLock()

    def expect(self, steps: Sequence[ExpectedStep]) -> None:
        with self._lock:
            self._left.expect(steps)
            self._line(plan_line(steps))

    def step(self, text: str, kind: StepKind | None = None) -> None:
        with self._lock:
            self._entered, self._text = self._clock(), ""
            self._left.enter(kind, self._entered)
            self._line(f"{self._left.place}{text}")

    def update(self, text: str, seconds_left: float | None = None) -> None:
        with self._lock:
            self._left.tell(seconds_left, self._clock())
            self._text = text
            if self._clock() - self._shown >= self._update_seconds:
                self._line(f"  {text}{self._end()}")

    def pulse(self) -> None:
        """Shows that the step goes on, after a long silence."""
        with self._lock:
            if self._clock() - self._shown >= MAX_SILENT_SECONDS:
                text = self._text or f"{self._clock() - self._entered:.0f} s so far"
                self._line(f"  {text}{self._end()}")

    def warn(self, text: str) -> None:
        with self._lock:
            self._line(f"warning: {text}")

    def close(self) -> None:
        self._stream.flush()

    def _end(self) -> str:
        told = time_left(self._left, self._clock())
        return f"; {told}" if told else ""

    def _line(self, text: str) -> None:
        self._shown = self._clock()
        # What a model calls its parts may be in it: a line of its own would be a CI's instruction.
        shown = "".join(c if c.isprintable() else " " for c in text)
        self._stream.write(f"tunegate {self._shown - self._started:7.1f} s  {shown}\n")
        self._stream.flush()


class Pulsed:
    """A log with a thread that gives a sign of life while it is open."""

    def __init__(self, log: PlainLog, seconds: float = 1.0) -> None:
        self._log, self._seconds = log, seconds
        self._is_over = threading.Event()
        self._thread = threading.Thread(target=self._beat, daemon=True)
        self._thread.start()

    def expect(self, steps: Sequence[ExpectedStep]) -> None:
        self._log.expect(steps)

    def step(self, text: str, kind: StepKind | None = None) -> None:
        self._log.step(text, kind)

    def update(self, text: str, seconds_left: float | None = None) -> None:
        self._log.update(text, seconds_left)

    def warn(self, text: str) -> None:
        self._log.warn(text)

    def close(self) -> None:
        self._is_over.set()
        self._thread.join()
        self._log.close()

    def _beat(self) -> None:
        while not self._is_over.wait(self._seconds):
            self._log.pulse()
