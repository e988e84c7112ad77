"""Segments that are not acknowledged yet, kept on the local disk until they are."""

from __future__ import annotations

import base64
from collections.abc import Iterator
from pathlib import Path

from tunegate_cache.files import FileStore
from tunegate_cache.store import ObjectNotFoundError, StoreUnavailableError


class WriteAhead:
    """A directory of pending objects. A full disk loses the net, not the flight."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._files = FileStore(directory)

    def keep(self, name: str, body: bytes) -> None:
        try:
            self._files.write(_file(name), body)
        except StoreUnavailableError:
            return

    def forget(self, name: str) -> None:
        (self._directory / _file(name)).unlink(missing_ok=True)

    def pending(self) -> Iterator[tuple[str, bytes]]:
        """(name, body) of what an earlier run could not deliver."""
        try:
            files = self._files.names("")
        except StoreUnavailableError:
            return
        for file in files:
            try:
                yield base64.urlsafe_b64decode(file.encode()).decode(), self._files.read(file)
            except (ObjectNotFoundError, StoreUnavailableError, ValueError):
                continue


def _file(name: str) -> str:
    """One flat file for each name; object names are short enough for a file name."""
    return base64.urlsafe_b64encode(name.encode()).decode()
