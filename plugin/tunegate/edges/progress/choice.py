"""The choice of the display while a run works: a live line on a terminal, plain lines in a log.

Everything here goes to stderr; stdout belongs to the product.
"""

from __future__ import annotations

import io
import sys
from collections.abc import Sequence
from typing import TextIO

from tunegate.artifacts.expected_steps import ExpectedStep, StepKind
from tunegate.edges.progress.plain_log import PlainLog, Pulsed
from tunegate.edges.progress.terminal import Terminal
from tunegate.edges.talk import Talk
from tunegate.ports import Progress

Shown = Terminal | PlainLog | Pulsed


def progress(stream: TextIO | Talk | None = None) -> Shown | Both:
    """The right kind of progress for where stderr goes, and for what the command line asks."""
    target = stream if stream is not None else sys.stderr
    if not isinstance(target, Talk):
        return _fitting(target)
    shown = _shown(target)
    return shown if target.log is None else Both(shown, PlainLog(target.log, update_seconds=0.0))


def unread_progress() -> PlainLog:
    """Progress that nobody reads."""
    return PlainLog(io.StringIO())


def _shown(talk: Talk) -> Shown:
    if talk.is_quiet:
        return unread_progress()
    if talk.is_verbose:
        return Pulsed(PlainLog(talk.stream, update_seconds=0.0))
    return _fitting(talk.stream)


def _fitting(stream: TextIO) -> Terminal | Pulsed:
    return Terminal(stream) if stream.isatty() else Pulsed(PlainLog(stream))


class Both:
    """The display and the log file together."""

    def __init__(self, shown: Shown, kept: PlainLog) -> None:
        self._parts = (shown, kept)

    def expect(self, steps: Sequence[ExpectedStep]) -> None:
        for part in self._parts:
            part.expect(steps)

    def step(self, text: str, kind: StepKind | None = None) -> None:
        for part in self._parts:
            part.step(text, kind)

    def update(self, text: str, seconds_left: float | None = None) -> None:
        for part in self._parts:
            part.update(text, seconds_left)

    def warn(self, text: str) -> None:
        for part in self._parts:
            part.warn(text)

    def close(self) -> None:
        for part in self._parts:
            part.close()


_: tuple[type[Progress], ...] = (Terminal, PlainLog, Pulsed, Both)
