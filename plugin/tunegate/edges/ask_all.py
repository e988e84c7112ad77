"""Several one-question children side by side, in one thread: a signal ends them all."""

from __future__ import annotations

import selectors
import time
from collections.abc import Sequence
from pathlib import Path
from typing import TypeVar

import msgspec

from tunegate.edges.child import Child, ChildDiedError

Reply = TypeVar("Reply")
_TICK_SECONDS = 1.0


def ask_all(
    module: str,
    replies: type[Reply],
    requests: Sequence[msgspec.Struct],
    *,
    at_once: int,
    limit_seconds: float,
    log: Path,
) -> list[Reply | ChildDiedError]:
    """Each request to a fresh child of its own, at most `at_once` at a time; answers in order.

    A child that dies or outlasts the limit is a ChildDiedError in its place.
    """
    answers: list[Reply | ChildDiedError | None] = [None] * len(requests)
    waiting = list(enumerate(requests))
    running: dict[Child[Reply], tuple[int, float]] = {}
    try:
        while waiting or running:
            while waiting and len(running) < at_once:
                index, request = waiting.pop(0)
                child = Child(module, replies, variables={}, log=log)
                running[child] = (index, time.monotonic() + limit_seconds)
                child.send(request)
            _wait(list(running))
            for child, (index, deadline) in list(running.items()):
                answer = _answer(child, deadline, limit_seconds)
                if answer is not None:
                    answers[index] = answer
                    del running[child]
                    child.kill()
    finally:
        for child in running:
            child.kill()
    return [answer for answer in answers if answer is not None]


def _wait(children: Sequence[Child[Reply]]) -> None:
    with selectors.DefaultSelector() as selector:
        for child in children:
            selector.register(child, selectors.EVENT_READ)
        selector.select(timeout=_TICK_SECONDS)


def _answer(
    child: Child[Reply], deadline: float, limit_seconds: float
) -> Reply | ChildDiedError | None:
    try:
        answer = child.receive()
    except ChildDiedError as error:
        return error
    if answer is None and time.monotonic() > deadline:
        return ChildDiedError(f"did not finish in {limit_seconds:.0f} s")
    return answer
