"""Segments that are not acknowledged yet, kept on the local disk until they are."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import msgspec

from tunegate_cache.format import segment
from tunegate_cache.format.names import SegmentName, parse_segment
from tunegate_cache.stores.files import FileStore
from tunegate_cache.stores.store import ObjectNotFoundError, StoreUnavailableError


class Pending(msgspec.Struct, frozen=True):
    name: SegmentName
    body: bytes


class WriteAhead:
    """A directory of pending segments, one per store. A full disk costs only this safety net:
    `keep` reports it and the run goes on."""

    def __init__(self, directory: Path) -> None:
        self._files = FileStore(directory)

    def keep(self, name: SegmentName, body: bytes) -> bool:
        try:
            self._files.write(name.name, body)
        except StoreUnavailableError:
            return False
        return True

    def forget(self, name: SegmentName) -> None:
        with suppress(StoreUnavailableError):
            self._files.delete(name.name)

    def pending(self, zone: str) -> Iterator[Pending]:
        """Yields what earlier runs could not deliver to the zone, oldest first."""
        try:
            files = self._files.names("")
        except StoreUnavailableError:
            return
        names = [name for name in map(parse_segment, files) if name and name.zone == zone]
        for name in sorted(names, key=lambda n: n.milliseconds):
            try:
                body = self._files.read(name.name)
            except (ObjectNotFoundError, StoreUnavailableError):
                continue  # another run delivered it in between
            if segment.segment_digest(body) == name.digest:
                yield Pending(name, body)
            else:
                self.forget(name)
