"""A cache in one SQLite file: `cache: {url: "sqlite:///srv/tuning/cache.db"}`."""

import sqlite3
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path
from typing import Any
from urllib.parse import unquote

from tunegate_cache.stores import store
from tunegate_cache.stores.store_kind import StoreAddress, StoreKind

_TABLE = "CREATE TABLE IF NOT EXISTS objects (name TEXT PRIMARY KEY, body BLOB, version INTEGER)"
_PRIMARY_CODE = 0xFF
"""The bits of an SQLite error code that say which kind it is."""
_BUSY_SECONDS = 5.0


class SqliteStore:
    """Each object is a row. The version counts how often a pointer has moved."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def read(self, name: str) -> bytes:
        return self._row(name)[0]

    def read_part(self, name: str, start: int, size: int) -> bytes:
        return self.read(name)[start : start + size]

    def names(self, prefix: str) -> Sequence[str]:
        asked = "SELECT name FROM objects WHERE substr(name, 1, ?) = ? ORDER BY name"
        return [name for (name,) in self._ask(asked, len(prefix), prefix)[0]]

    def write(self, name: str, body: bytes) -> None:
        self._ask("INSERT OR IGNORE INTO objects VALUES (?, ?, 0)", name, body)
        if self.read(name) != body:
            raise store.ObjectConflictError(f"{self._path}: {name} holds another body")

    def read_pointer(self, name: str) -> store.Pointer:
        body, version = self._row(name)
        return store.Pointer(body, str(version))

    def move_pointer(self, name: str, body: bytes, expected: str | None) -> None:
        if expected is None:
            moved = self._ask("INSERT OR IGNORE INTO objects VALUES (?, ?, 1)", name, body)[1]
        else:
            swap = (
                "UPDATE objects SET body = ?, version = version + 1 WHERE name = ? AND version = ?"
            )
            moved = self._ask(swap, body, name, int(expected))[1]
        if not moved:
            raise store.PointerMovedError(name)

    def delete(self, name: str) -> None:
        self._ask("DELETE FROM objects WHERE name = ?", name)

    def _row(self, name: str) -> tuple[bytes, int]:
        rows, _ = self._ask("SELECT body, version FROM objects WHERE name = ?", name)
        if not rows:
            raise store.ObjectNotFoundError(name)
        return rows[0][0], rows[0][1]

    def _ask(self, statement: str, *values: object) -> tuple[list[Any], int]:
        """Returns the rows, and how many were changed. A connection belongs to one thread, so that
        each request makes its own."""
        try:
            self._path.parent.mkdir(parents=True, exist_ok=True)
            with (
                closing(sqlite3.connect(self._path, timeout=_BUSY_SECONDS)) as connection,
                connection,
            ):
                connection.execute(_TABLE)
                answered = connection.execute(statement, values)
                return answered.fetchall(), answered.rowcount
        except sqlite3.OperationalError as error:
            is_busy = error.sqlite_errorcode & _PRIMARY_CODE == sqlite3.SQLITE_BUSY
            kind = store.StoreBusyError if is_busy else store.StoreUnavailableError
            raise kind(f"{self._path}: {error}") from error
        except (sqlite3.Error, OSError) as error:
            raise store.StoreUnavailableError(f"{self._path}: {error}") from error


def _open(address: StoreAddress) -> SqliteStore:
    return SqliteStore(Path(unquote(address.parts.path)))


def _accepts(address: StoreAddress) -> bool:
    return not address.parts.netloc and len(address.parts.path) > 1


_: type[store.MaintainedStore] = SqliteStore
SQLITE = StoreKind(
    form="sqlite:///directory/cache.db",
    accepts=_accepts,
    open=_open,
    is_remote=False,
    advice=("make it a file that this user may read and write",),
)
