"""The few functions that are asked, as in cupti-python."""

import enum
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any


class cuptiError(Exception):
    pass


class ActivityKind(enum.IntEnum):
    MEMCPY = 1
    CONCURRENT_KERNEL = 10


_waiting: list[Any] = []
_completed: list[Callable[[list[Any]], None]] = []


def activity_register_callbacks(
    requested: Callable[[], tuple[int, int]], completed: Callable[[list[Any]], None]
) -> None:
    assert requested()[0] > 0
    _completed[:] = [completed]


def activity_enable(kind: ActivityKind) -> None:
    assert kind is ActivityKind.CONCURRENT_KERNEL


def activity_flush_all(flag: int) -> None:
    if _waiting:
        _completed[0](list(_waiting))
        _waiting.clear()


def kernel_ran(nanoseconds: int, kind: ActivityKind = ActivityKind.CONCURRENT_KERNEL) -> None:
    """Reports a kernel that ran on the device that is not there."""
    _waiting.append(SimpleNamespace(kind=int(kind), start=1000, end=1000 + nanoseconds))
