"""Talks to several children in turn, in one thread: a signal ends them all."""

import selectors
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Generic, TypeVar

import msgspec

from tunegate.system.processes.child import Child, ChildDiedError

_Reply = TypeVar("_Reply")
_TICK_SECONDS = 1.0


class Conversation(Generic[_Reply]):
    """A child and its requests: `first`, then whatever `then` makes of a reply until that is None.
    `died` says how the child ended if it did not answer everything. `patience_seconds` is for a
    child with less time than the others."""

    def __init__(
        self,
        begin: Callable[[], Child[_Reply]],
        first: msgspec.Struct,
        then: Callable[[_Reply], msgspec.Struct | None] = lambda _: None,
        patience_seconds: float = float("inf"),
    ) -> None:
        self._patience_seconds = patience_seconds
        self._begin, self._first, self._then = begin, first, then
        self._asked = self._waited = 0.0
        self.child: Child[_Reply] | None = None
        self.replies: list[_Reply] = []
        self.died: ChildDiedError | None = None

    def start(self) -> Child[_Reply]:
        self.child = self._begin()
        self._ask(self._first)
        return self.child

    def is_over(self, limit_seconds: float) -> bool:
        """Takes the reply if it has arrived, and sends the next request. Returns whether the
        conversation is over."""
        if self.child is None or self.died is not None:
            return True
        limit_seconds = min(limit_seconds, self._patience_seconds)
        try:
            reply = self.child.receive()
        except ChildDiedError as error:
            return self._end(error)
        if reply is None:
            if not self._is_late(self.child, limit_seconds):
                return False
            return self._end(ChildDiedError(f"did not finish in {limit_seconds:.0f} s"))
        self.replies.append(reply)
        question = self._then(reply)
        if question is None:
            return True
        self._ask(question)
        return False

    def dismiss(self) -> None:
        """Kills the child, which is no longer needed."""
        if self.child is not None:
            self.child.kill()

    def _is_late(self, child: Child[_Reply], limit_seconds: float) -> bool:
        """Returns whether the time is up, not counting time in which others had the cores."""
        seconds = time.monotonic() - self._asked
        if seconds < limit_seconds:
            return False
        return is_time_up(seconds, limit_seconds, waited_for_core(child.pid) - self._waited)

    def _ask(self, question: msgspec.Struct) -> None:
        self._asked = time.monotonic()
        try:
            if self.child is not None:
                self._waited = waited_for_core(self.child.pid)
                self.child.send(question)
        except ChildDiedError as error:
            self._end(error)

    def _end(self, error: ChildDiedError) -> bool:
        self.died = error
        self.dismiss()
        return True


def converse(
    conversations: Sequence[Conversation[_Reply]],
    *,
    at_once: int,
    limit_seconds: float,
    on_end: Callable[[Conversation[_Reply]], None] = lambda _: None,
) -> None:
    """Holds every conversation to its end, at most `at_once` at a time; each request has the time
    limit. `on_end` is called after each: children that did not die stay alive, and belong to the
    caller."""
    waiting = list(conversations)
    running: dict[Child[_Reply], Conversation[_Reply]] = {}
    try:
        while waiting or running:
            while waiting and len(running) < at_once:
                conversation = waiting.pop(0)
                running[conversation.start()] = conversation
            _wait([child for child, one in running.items() if one.died is None])
            for child, conversation in list(running.items()):
                if conversation.is_over(limit_seconds):
                    del running[child]
                    on_end(conversation)
    finally:
        for child in running:
            child.kill()


def _wait(children: Sequence[Child[_Reply]]) -> None:
    with selectors.DefaultSelector() as selector:
        for child in children:
            selector.register(child, selectors.EVENT_READ)
        selector.select(timeout=_TICK_SECONDS if children else 0)


# Time that a process waited for a core: on a busy machine that is most of its time.

MOST_WAITED = 3.0
"""The waiting that a time limit forgives, in multiples of the limit: waiting must end, too."""
_NANOSECONDS = 1e9


def waited_for_core(pid: int, proc: Path = Path("/proc")) -> float:
    """Returns the seconds that the longest-waiting thread has been ready without running. 0 if the
    process is gone, or the kernel does not count them."""
    seconds = 0.0
    with suppress(OSError):
        for thread in (proc / str(pid) / "task").iterdir():
            with suppress(OSError, ValueError, IndexError):
                fields = (thread / "schedstat").read_text().split()
                seconds = max(seconds, int(fields[1]) / _NANOSECONDS)
    return seconds


def is_time_up(seconds: float, limit: float, wait_seconds: float) -> bool:
    """Returns whether `seconds` exceed the limit, without the `wait_seconds` for a core; a process
    that sleeps or computes gains nothing."""
    return seconds - min(max(0.0, wait_seconds), MOST_WAITED * limit) >= limit
