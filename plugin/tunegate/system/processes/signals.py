"""Ctrl-C, a CI runner's SIGTERM and a lost terminal's SIGHUP, each as one KeyboardInterrupt.

The first one lets the run keep what is finished; a second Ctrl-C or SIGTERM ends the process at
once (its children ask the kernel to go with it).
"""

from __future__ import annotations

import contextlib
import os
import signal
import threading
from collections.abc import Callable, Iterator
from types import FrameType

from tunegate.errors import CANCELLED

_Handler = Callable[[int, FrameType | None], None]
_Handlers = dict[signal.Signals, _Handler | int | signal.Handlers | None]
_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


@contextlib.contextmanager
def cancellable() -> Iterator[None]:
    """Makes the first of these signals raise KeyboardInterrupt inside. Only the main
    thread may set handlers; in any other this does nothing. Who started the command
    under `nohup` wants it to go on."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = _handled_by(_first)
    try:
        yield
    finally:
        _restore(before)


@contextlib.contextmanager
def postponed() -> Iterator[None]:
    """Makes the first of these signals wait for the end of what is inside, which must be short: it
    raises KeyboardInterrupt then. What must be known before it can be undone is done in here."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    came: list[int] = []

    def remember(number: int, frame: FrameType | None) -> None:
        if came:
            _second(number, frame)
        came.append(number)

    before = _handled_by(remember)
    try:
        yield
    finally:
        _restore(before)
    if came:
        _first(came[0], None)


def _handled_by(handler: _Handler) -> _Handlers:
    """The handlers that were there before."""
    is_kept_alive = signal.getsignal(signal.SIGHUP) is signal.SIG_IGN
    heeded = [s for s in _SIGNALS if not (s is signal.SIGHUP and is_kept_alive)]
    return {number: signal.signal(number, handler) for number in heeded}


def _restore(handlers: _Handlers) -> None:
    for number, handler in handlers.items():
        signal.signal(number, handler)


def _first(number: int, frame: FrameType | None) -> None:
    signal.signal(signal.SIGINT, _second)
    signal.signal(signal.SIGTERM, _second)
    # The kernel and the shell both tell of a lost terminal: nobody is impatient.
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    raise KeyboardInterrupt


def _second(number: int, frame: FrameType | None) -> None:
    os._exit(CANCELLED)
