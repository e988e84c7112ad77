import contextlib
import ctypes
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tunegate.errors import CancelledError
from tunegate.system.processes.child import Child
from tunegate.system.processes.memory_limit import MemoryLimit
from tunegate.system.processes.signals import cancellable, postpone, raise_if_cancelled
from tunegate.system.processes.user_command import output_of
from tunegate.tune.protocol import Measured

STUBBORN = """\
import time
from tunegate.system.processes.signals import cancellable
with cancellable():
    try:
        print("ready", flush=True)
        time.sleep(60)
    except KeyboardInterrupt:
        print("cleaning up", flush=True)
        time.sleep(60)
"""


@pytest.fixture(autouse=True)
def _started_without_nohup() -> Iterator[None]:
    """A process that nohup has started ignores a lost terminal, and so would these tests."""
    before = signal.signal(signal.SIGHUP, signal.SIG_DFL)
    yield
    signal.signal(signal.SIGHUP, before)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_each_signal_is_one_keyboard_interrupt(number: signal.Signals) -> None:
    before = signal.getsignal(number)
    with pytest.raises(KeyboardInterrupt), cancellable():
        os.kill(os.getpid(), number)
    assert signal.getsignal(number) is before


class Finalized:
    """An object that is collected just as a signal comes."""

    def __init__(self, number: signal.Signals) -> None:
        self._number = number

    def __del__(self) -> None:
        os.kill(os.getpid(), self._number)
        for _ in range(1000):  # here Python raises, and drops what is raised
            pass


def work_on(it: Finalized) -> None:
    """Drops it, and goes on for a minute."""
    del it
    for _ in range(600):
        time.sleep(0.1)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_signal_that_comes_in_a_finalizer_is_not_lost(number: signal.Signals) -> None:
    hook = sys.unraisablehook
    with pytest.raises(KeyboardInterrupt), cancellable():
        work_on(Finalized(number))
    assert sys.unraisablehook is hook


class Interrupted:
    """An object whose attribute is read just as a signal comes."""

    @property
    def name(self) -> str:
        os.kill(os.getpid(), signal.SIGTERM)
        for _ in range(1000):  # here Python raises
            pass
        return ""


def drop_in_python() -> None:
    with contextlib.suppress(BaseException):
        assert Interrupted().name


def drop_in_c() -> None:
    """Does as many C extensions when imported; newer Pythons report it as unraisable."""
    ctypes.pythonapi.PyObject_HasAttrString(ctypes.py_object(Interrupted()), b"name")


DROPS = [drop_in_python, drop_in_c]


def run(*steps: Callable[[], object]) -> None:
    """Does the steps, in what can be cancelled."""
    with cancellable():
        for step in steps:
            step()


@pytest.mark.parametrize("drop", DROPS)
def test_an_interrupt_that_anybody_drops_comes_at_the_next_step(drop: Callable[[], None]) -> None:
    before, after = signal.getsignal(signal.SIGINT), []
    with pytest.raises(KeyboardInterrupt):
        run(drop, raise_if_cancelled, lambda: after.append("a verdict"))
    assert not after
    assert signal.getsignal(signal.SIGINT) is before
    raise_if_cancelled()  # it is over


@pytest.mark.parametrize("drop", DROPS)
def test_an_interrupt_that_anybody_drops_comes_at_the_end(drop: Callable[[], None]) -> None:
    ends = []
    with pytest.raises(KeyboardInterrupt):
        run(drop, lambda: ends.append("a verdict"))
    with pytest.raises(KeyboardInterrupt):
        run(drop, lambda: ends.remove("another verdict"))
    with pytest.raises(KeyboardInterrupt):
        run(postpone()(drop))
    assert ends == ["a verdict"]


def test_whoever_cleans_up_is_not_interrupted_again() -> None:
    done = []

    def clean_up() -> None:
        try:
            os.kill(os.getpid(), signal.SIGTERM)
        finally:
            raise_if_cancelled()
            done.append("all of it")

    with pytest.raises(KeyboardInterrupt):
        run(clean_up)
    assert done


def test_what_is_cancelled_in_our_words_stays_so() -> None:
    def cancel() -> None:
        raise CancelledError("the outcome is kept")

    with pytest.raises(CancelledError, match="the outcome is kept"):
        run(drop_in_python, cancel)


def test_a_child_is_not_waited_for_once_an_interrupt_was_dropped(tmp_path: Path) -> None:
    idle = Child(
        "tests.support.simulated.odd_worker",
        Measured,
        variables={},
        memory=MemoryLimit(8 * 2**30),
        log=tmp_path / "log",
    )
    try:
        with pytest.raises(KeyboardInterrupt):
            run(drop_in_python, idle.receive)
    finally:
        idle.kill()
    with pytest.raises(KeyboardInterrupt):
        run(drop_in_python, lambda: output_of("sleep 3600"))


def test_a_second_signal_ends_the_process_whatever_it_is_doing() -> None:
    with subprocess.Popen(
        [sys.executable, "-c", STUBBORN], stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        process.send_signal(signal.SIGTERM)
        assert process.stdout.readline() == "cleaning up\n"
        process.send_signal(signal.SIGINT)
        assert process.wait(timeout=60) == 130


def test_a_lost_terminal_is_told_twice_and_nothing_is_cut_short() -> None:
    before, kept = signal.getsignal(signal.SIGHUP), []

    def work() -> None:
        try:
            os.kill(os.getpid(), signal.SIGHUP)
        finally:
            os.kill(os.getpid(), signal.SIGHUP)
            kept.append("the rest")

    with pytest.raises(KeyboardInterrupt):
        run(work)
    assert kept
    assert signal.getsignal(signal.SIGHUP) is before


def test_a_signal_that_is_postponed_comes_at_the_end() -> None:
    before = signal.getsignal(signal.SIGTERM)
    done = []

    def work() -> None:
        with cancellable(), postpone():
            os.kill(os.getpid(), signal.SIGTERM)
            done.append("the rest")

    with pytest.raises(KeyboardInterrupt):
        work()
    assert done
    assert signal.getsignal(signal.SIGTERM) is before


def test_nothing_comes_of_what_is_postponed_without_a_signal() -> None:
    with cancellable():
        handler = signal.getsignal(signal.SIGINT)
        with postpone():
            assert signal.getsignal(signal.SIGINT) is not handler
        assert signal.getsignal(signal.SIGINT) is handler


def test_under_nohup_a_lost_terminal_is_none() -> None:
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        with cancellable():
            os.kill(os.getpid(), signal.SIGHUP)
            assert signal.getsignal(signal.SIGHUP) is signal.SIG_IGN
    finally:
        signal.signal(signal.SIGHUP, before)


def test_in_another_thread_nothing_is_touched() -> None:
    before = signal.getsignal(signal.SIGTERM)
    seen: list[object] = []

    def work() -> None:
        with cancellable():
            seen.append(signal.getsignal(signal.SIGTERM))

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert seen == [before]
