"""A store in a directory: the embedded default, safe for many processes and for kill -9."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Sequence
from pathlib import Path

from tunegate_cache.store import ObjectNotFoundError, ObjectStore, StoreUnavailableError

_PARTIAL = ".partial-"


class FileStore:
    """Objects are files under `root`. A name appears only when its whole body is on the disk."""

    def __init__(self, root: Path) -> None:
        self._root = root

    def read(self, name: str) -> bytes:
        try:
            return self._path(name).read_bytes()
        except FileNotFoundError:
            raise ObjectNotFoundError(name) from None
        except OSError as error:
            raise self._fault(error) from error

    def write(self, name: str, body: bytes) -> None:
        path = self._path(name)
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            descriptor, partial = tempfile.mkstemp(prefix=_PARTIAL, dir=path.parent)
            try:
                with os.fdopen(descriptor, "wb") as file:
                    file.write(body)
                    file.flush()
                    os.fsync(file.fileno())
                # A link fails where the name exists: the first body stays.
                Path(path).hardlink_to(partial)
            except FileExistsError:
                pass
            finally:
                Path(partial).unlink(missing_ok=True)
        except OSError as error:
            raise self._fault(error) from error

    def names(self, prefix: str) -> Sequence[str]:
        start = self._path(prefix.rpartition("/")[0])
        try:
            found = [path for path in start.rglob("*") if path.is_file()]
        except OSError as error:
            raise self._fault(error) from error
        names = (path.relative_to(self._root).as_posix() for path in found)
        return sorted(n for n in names if n.startswith(prefix) and f"/{_PARTIAL}" not in n)

    def _path(self, name: str) -> Path:
        path = self._root / name
        if ".." in Path(name).parts or Path(name).is_absolute():
            raise ObjectNotFoundError(name)
        return path

    def _fault(self, error: OSError) -> StoreUnavailableError:
        return StoreUnavailableError(f"{self._root}: {error.strerror or error}")


_: type[ObjectStore] = FileStore
