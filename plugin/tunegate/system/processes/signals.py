"""Turns Ctrl-C, a CI runner's SIGTERM and a lost terminal's SIGHUP into one KeyboardInterrupt.

The first one lets the run keep what is finished; a second Ctrl-C or SIGTERM ends the process at
once (its children ask the kernel to go with it).

Python code anywhere may drop an exception, and so may a library's C code, whatever its kind. So the
signal is remembered until the KeyboardInterrupt has ended what can be cancelled: it is raised again
between steps, while a child is waited for, and at the end.
"""

import contextlib
import os
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from types import FrameType

from tunegate.errors import CANCELLED, was_cancelled

_Handler = Callable[[int, FrameType | None], None]
_Handlers = dict[signal.Signals, _Handler | int | signal.Handlers | None]
_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
_REPEAT_SECONDS = 0.05

_own_signals: set[int] = set()
"""The signals that this process sent to itself, and that no handler has had yet."""

_pending: set[int] = set()
"""The signals whose interrupt has not ended a `cancellable` block yet."""


@contextlib.contextmanager
def cancellable() -> Iterator[None]:
    """Makes the first of these signals raise KeyboardInterrupt inside, and at the end if that was
    lost on its way. Does nothing outside the main thread, which alone may set handlers, and ignores
    SIGHUP under `nohup`, whose user wants the command to go on."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before, hook = _set_handler(_interrupt_once), sys.unraisablehook
    sys.unraisablehook = _interrupt_again
    try:
        yield
        raise_if_cancelled()
    except BaseException as error:
        if not _pending or was_cancelled(error):
            raise
        raise KeyboardInterrupt from error
    finally:
        _pending.clear()
        _own_signals.clear()
        sys.unraisablehook = hook
        _restore(before)


@contextlib.contextmanager
def postpone() -> Iterator[None]:
    """Delays the first of these signals until the end of the block, which must be short: it then
    raises KeyboardInterrupt. For steps that must be recorded before they can be undone."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    came: list[int] = []

    def remember(number: int, frame: FrameType | None) -> None:
        if came:
            _exit_at_once(number, frame)
        came.append(number)

    before = _set_handler(remember)
    try:
        yield
    finally:
        _restore(before)
        if came:
            _interrupt_once(came[0], None)
        raise_if_cancelled()


def raise_if_cancelled() -> None:
    """Raises KeyboardInterrupt if a signal came and nothing ended: its interrupt was lost. Whoever
    cleans up after an interrupt is not interrupted again."""
    if not _pending or threading.current_thread() is not threading.main_thread():
        return
    if not was_cancelled(sys.exc_info()[1]):
        _interrupt_once(max(_pending), None)


def _set_handler(handler: _Handler) -> _Handlers:
    """Sets the handler, and returns the previous ones."""
    is_kept_alive = signal.getsignal(signal.SIGHUP) is signal.SIG_IGN
    numbers = [s for s in _SIGNALS if not (s is signal.SIGHUP and is_kept_alive)]
    return {number: signal.signal(number, handler) for number in numbers}


def _restore(handlers: _Handlers) -> None:
    for number, handler in handlers.items():
        signal.signal(number, handler)


def _interrupt_once(number: int, frame: FrameType | None) -> None:
    _pending.add(number)
    if frame is not None:
        _own_signals.discard(number)
    signal.signal(signal.SIGINT, _exit_at_once)
    signal.signal(signal.SIGTERM, _exit_at_once)
    # The kernel and the shell both report a lost terminal: a second one is no impatience.
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    raise KeyboardInterrupt


def _interrupt_again(unraisable: "sys.UnraisableHookArgs") -> None:
    """Repeats an interrupt that came in a finalizer or a callback of a weak reference, such as the
    import system has: Python drops what is raised there. Raised here it would be dropped, too."""
    if unraisable.exc_type is not KeyboardInterrupt:
        sys.__unraisablehook__(unraisable)
        return
    signal.signal(signal.SIGINT, _interrupt_once)
    again = threading.Timer(_REPEAT_SECONDS, _interrupt_main)
    again.daemon = True
    again.start()


def _interrupt_main() -> None:
    """Sends the signal once more: it ends a system call that the main thread waits in."""
    if signal.getsignal(signal.SIGINT) is _interrupt_once:  # else the work has ended meanwhile
        _own_signals.add(signal.SIGINT)
        signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGINT)


def _exit_at_once(number: int, frame: FrameType | None) -> None:
    if number in _own_signals:  # the main thread answered meanwhile: nobody is impatient
        _own_signals.discard(number)
        return
    os._exit(CANCELLED)
