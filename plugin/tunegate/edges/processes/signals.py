"""Ctrl-C, a CI runner's SIGTERM and a lost terminal's SIGHUP, each as one KeyboardInterrupt.

The first one lets the run keep what is finished; a second Ctrl-C or SIGTERM ends the process at
once (its children ask the kernel to go with it).
"""

from __future__ import annotations

import contextlib
import os
import signal
import threading
from collections.abc import Iterator
from types import FrameType

from tunegate.errors import CANCELLED

_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


@contextlib.contextmanager
def cancellable() -> Iterator[None]:
    """Makes the first of these signals raise KeyboardInterrupt inside. Only the main
    thread may set handlers; in any other this does nothing. Who started the command
    under `nohup` wants it to go on."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    is_kept_alive = signal.getsignal(signal.SIGHUP) is signal.SIG_IGN
    heeded = [s for s in _SIGNALS if not (s is signal.SIGHUP and is_kept_alive)]
    before = {number: signal.signal(number, _first) for number in heeded}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _first(number: int, frame: FrameType | None) -> None:
    signal.signal(signal.SIGINT, _second)
    signal.signal(signal.SIGTERM, _second)
    # The kernel and the shell both tell of a lost terminal: nobody is impatient.
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    raise KeyboardInterrupt


def _second(number: int, frame: FrameType | None) -> None:
    os._exit(CANCELLED)
