"""The limits of a download: whatever the server sends, it ends, and does not fill the disk."""

from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path
from typing import Generic, TypeVar

import msgspec

from tunegate.errors import EnvironmentUnfitError, ModelError

_Answer = TypeVar("_Answer")
_POLL_SECONDS = 0.2


class DownloadLimits(msgspec.Struct, frozen=True, kw_only=True):
    """The most bytes and seconds of one model."""

    bytes: int = 32 * 2**30
    seconds: float = 600.0


class ByteCount:
    """Counts the bytes of one model, over all its files."""

    def __init__(self, most_bytes: int) -> None:
        self._most_bytes, self._bytes = most_bytes, 0

    def add(self, size_bytes: int) -> None:
        """Adds bytes. Raises ModelError once they are too many."""
        self._bytes += size_bytes
        if self._bytes > self._most_bytes:
            raise ModelError(_too_large(self._most_bytes))

    @property
    def bytes_left(self) -> int:
        """Returns how many more bytes are allowed."""
        return self._most_bytes - self._bytes


def within_limits(
    ask: Callable[[], _Answer], address: str, limits: DownloadLimits, grows: Path | None = None
) -> _Answer:
    """Returns the result of `ask`, run in a thread, as a library's client may have no limits.
    `grows` is the directory that it fills. Raises EnvironmentUnfitError if it takes too long,
    ModelError if the directory grows too large, and what `ask` raises."""
    asked = _Asked(ask)
    waited = 0.0
    while not asked.done.wait(_POLL_SECONDS):
        waited += _POLL_SECONDS
        if waited >= limits.seconds:
            message = (
                f"{address}: not here after {limits.seconds:g} s. Try again, or give it longer."
            )
            raise EnvironmentUnfitError(message)
        if grows is not None and _size_bytes(grows) > limits.bytes:
            raise ModelError(_too_large(limits.bytes))
    return asked.answer()


class _Asked(threading.Thread, Generic[_Answer]):
    def __init__(self, ask: Callable[[], _Answer]) -> None:
        super().__init__(daemon=True)
        self._ask = ask
        self._answers: list[_Answer] = []
        self._fault: BaseException | None = None
        self.done = threading.Event()
        self.start()

    def run(self) -> None:
        try:
            self._answers.append(self._ask())
        except BaseException as error:  # noqa: BLE001 -- raised again by who waits
            self._fault = error
        self.done.set()

    def answer(self) -> _Answer:
        if self._fault is not None:
            raise self._fault
        return self._answers[0]


def _size_bytes(directory: Path) -> int:
    total = 0
    for file in directory.rglob("*"):
        try:
            total += file.lstat().st_size
        except OSError:  # it was renamed meanwhile
            continue
    return total


def _too_large(most_bytes: int) -> str:
    return f"the model has more than {most_bytes / 2**30:g} GiB with its data"
