"""What people see while a run works: a live line on a terminal, plain lines in a log.

Everything here goes to stderr; stdout belongs to the product.
"""

from __future__ import annotations

import io
import sys
import time
from collections.abc import Callable
from typing import Protocol, TextIO

from rich.console import Console
from rich.markup import escape
from rich.status import Status

from tunegate.edges.talk import Talk
from tunegate.ports import Progress

_LOG_UPDATE_SECONDS = 30.0


class Lines(Protocol):
    """What a log writes to."""

    def write(self, text: str, /) -> object: ...
    def flush(self) -> None: ...


def progress(stream: TextIO | Talk | None = None) -> Terminal | PlainLog | Both:
    """The right kind of progress for where stderr goes, and for what the command line asks."""
    target = stream if stream is not None else sys.stderr
    if not isinstance(target, Talk):
        return _fitting(target)
    shown = _shown(target)
    return shown if target.log is None else Both(shown, PlainLog(target.log, update_seconds=0.0))


def _shown(talk: Talk) -> Terminal | PlainLog:
    if talk.is_quiet:
        return PlainLog(io.StringIO())
    if talk.is_verbose:
        return PlainLog(talk.stream, update_seconds=0.0)
    return _fitting(talk.stream)


def _fitting(stream: TextIO) -> Terminal | PlainLog:
    return Terminal(stream) if stream.isatty() else PlainLog(stream)


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

    def __init__(
        self,
        stream: Lines,
        clock: Callable[[], float] = time.monotonic,
        update_seconds: float = _LOG_UPDATE_SECONDS,
    ) -> None:
        self._stream = stream
        self._clock = clock
        self._update_seconds = update_seconds
        self._started = self._shown = clock()

    def step(self, text: str) -> None:
        self._line(text)

    def update(self, text: str) -> None:
        if self._clock() - self._shown >= self._update_seconds:
            self._line(f"  {text}")

    def warn(self, text: str) -> None:
        self._line(f"warning: {text}")

    def close(self) -> None:
        self._stream.flush()

    def _line(self, text: str) -> None:
        self._shown = self._clock()
        # What a model calls its parts may be in it: a line of its own would be a CI's instruction.
        shown = "".join(c if c.isprintable() else " " for c in text)
        self._stream.write(f"tunegate {self._shown - self._started:7.1f} s  {shown}\n")
        self._stream.flush()


class Both:
    """What is shown, and what the log file keeps."""

    def __init__(self, shown: Terminal | PlainLog, kept: PlainLog) -> None:
        self._parts = (shown, kept)

    def step(self, text: str) -> None:
        for part in self._parts:
            part.step(text)

    def update(self, text: str) -> None:
        for part in self._parts:
            part.update(text)

    def warn(self, text: str) -> None:
        for part in self._parts:
            part.warn(text)

    def close(self) -> None:
        for part in self._parts:
            part.close()


_: tuple[type[Progress], ...] = (Terminal, PlainLog, Both)
