"""Ctrl-C and a CI runner's SIGTERM, both as one KeyboardInterrupt.

The first one lets the run keep what is finished; a second one ends the process at once (its
children ask the kernel to go with it).
"""

from __future__ import annotations

import contextlib
import os
import signal
import threading
from collections.abc import Iterator
from types import FrameType

from tunegate.errors import CANCELLED

_SIGNALS = (signal.SIGINT, signal.SIGTERM)


@contextlib.contextmanager
def cancellable() -> Iterator[None]:
    """Inside, the first of the two signals raises KeyboardInterrupt. Only the main thread may set
    handlers; in any other this does nothing."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = {number: signal.signal(number, _first) for number in _SIGNALS}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _first(number: int, frame: FrameType | None) -> None:
    for every in _SIGNALS:
        signal.signal(every, _second)
    raise KeyboardInterrupt


def _second(number: int, frame: FrameType | None) -> None:
    os._exit(CANCELLED)
