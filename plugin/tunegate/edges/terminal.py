"""What people see while a run works: a live line on a terminal, plain lines in a log.

Everything here goes to stderr; stdout belongs to the product.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from typing import TextIO

from rich.console import Console
from rich.markup import escape
from rich.status import Status

from tunegate.ports import Progress

_LOG_UPDATE_SECONDS = 30.0


def progress(stream: TextIO | None = None) -> Terminal | PlainLog:
    """The right kind of progress for where stderr goes."""
    target = stream if stream is not None else sys.stderr
    return Terminal(target) if target.isatty() else PlainLog(target)


class Terminal:
    """One live line for the step under way; finished steps stay above it with their time."""

    def __init__(self, stream: TextIO) -> None:
        self._console = Console(file=stream, highlight=False)
        self._status: Status | None = None
        self._step = ""
        self._started = 0.0

    def step(self, text: str) -> None:
        self.close()
        self._step, self._started = text, time.monotonic()
        self._status = self._console.status(escape(text))
        self._status.start()

    def update(self, text: str) -> None:
        if self._status is None:
            self.step(text)
        else:
            self._status.update(f"{escape(self._step)} [dim]{escape(text)}[/]")

    def warn(self, text: str) -> None:
        self._console.print(f"[yellow]warning:[/] {escape(text)}")

    def close(self) -> None:
        """End the live line; must come before anything else is printed."""
        if self._status is None:
            return
        self._status.stop()
        self._status = None
        seconds = time.monotonic() - self._started
        self._console.print(f"[green]✓[/] {escape(self._step)} [dim]{seconds:.1f} s[/]")


class PlainLog:
    """One line per step with the seconds since the start; updates are thinned out, so that a long
    step shows life and does not fill the log."""

    def __init__(self, stream: TextIO, clock: Callable[[], float] = time.monotonic) -> None:
        self._stream = stream
        self._clock = clock
        self._started = self._shown = clock()

    def step(self, text: str) -> None:
        self._line(text)

    def update(self, text: str) -> None:
        if self._clock() - self._shown >= _LOG_UPDATE_SECONDS:
            self._line(f"  {text}")

    def warn(self, text: str) -> None:
        self._line(f"warning: {text}")

    def close(self) -> None:
        self._stream.flush()

    def _line(self, text: str) -> None:
        self._shown = self._clock()
        self._stream.write(f"tunegate {self._shown - self._started:7.1f} s  {text}\n")
        self._stream.flush()


_: tuple[type[Progress], ...] = (Terminal, PlainLog)
