"""Folders for files of a moment. What a killed process left of them, a later run removes."""

import fcntl
import os
import shutil
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

_PREFIX = "tunegate-tmp-"
_YOUNG_SECONDS = 60
"""So long a folder may take from being made to being locked."""


class TemporaryFolder(tempfile.TemporaryDirectory[str]):
    """A folder in TMPDIR, which goes at its end or with this process. It is locked as long: a lock
    ends even with a process that was killed."""

    def __init__(self) -> None:
        super().__init__(prefix=_PREFIX)
        self._lock = os.open(self.name, os.O_RDONLY)
        with suppress(OSError):  # a file system without locks: nobody removes it then
            fcntl.flock(self._lock, fcntl.LOCK_SH)

    def cleanup(self) -> None:
        super().cleanup()
        if self._lock >= 0:
            os.close(self._lock)
            self._lock = -1


def remove_abandoned() -> None:
    """Removes this user's folders that no process holds any longer."""
    with suppress(OSError), os.scandir(tempfile.gettempdir()) as entries:
        for entry in entries:
            if entry.name.startswith(_PREFIX):
                with suppress(OSError), _lock_exclusively(Path(entry.path)):
                    shutil.rmtree(entry.path, ignore_errors=True)


@contextmanager
def _lock_exclusively(folder: Path) -> Iterator[None]:
    """Locks the folder. Raises OSError if it is another's, a link, held or young."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
    try:
        status = os.fstat(descriptor)
        if status.st_uid != os.getuid() or time.time() - status.st_mtime < _YOUNG_SECONDS:
            raise PermissionError(folder)
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        yield
    finally:
        os.close(descriptor)
