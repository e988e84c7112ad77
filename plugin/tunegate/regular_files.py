"""Files read and replaced without following a link, and without waiting for a pipe.

Standard library only, and nothing newer than Python 3.8: the Action's clean-up step uses it too.
"""

from __future__ import annotations

import errno
import os
import stat
from contextlib import suppress
from pathlib import Path
from typing import BinaryIO

_READ = os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK
_CREATE = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC | os.O_NOFOLLOW


def read_regular(path: Path) -> bytes:
    """The content of a plain file. Raises OSError for a link, a directory, a pipe or a device."""
    with os.fdopen(os.open(path, _READ), "rb") as file:
        if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
            raise OSError(errno.EINVAL, "it is no plain file", str(path))
        return file.read()


def opened_inside(root: Path, path: str) -> BinaryIO | None:
    """The file at `path` below `root`, which may itself be a link; None where there is no regular
    file, or the way to it leads over a link."""
    *directories, name = Path(path).parts
    here = os.open(root, os.O_RDONLY | os.O_DIRECTORY)
    try:
        for directory in directories:
            below = os.open(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW, dir_fd=here)
            os.close(here)
            here = below
        # A pipe would be waited for.
        found = os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK, dir_fd=here)
    except OSError:
        return None
    finally:
        os.close(here)
    if stat.S_ISREG(os.fstat(found).st_mode):
        return os.fdopen(found, "rb")
    os.close(found)
    return None


def replace(path: Path, body: bytes) -> None:
    """Writes a file whole, or not at all. What stood there is replaced, a link instead of what it
    leads to. Raises OSError."""
    partial = path.with_name(f".{path.name}.partial")
    with suppress(FileNotFoundError):
        partial.unlink()  # of a process that was killed
    try:
        with os.fdopen(os.open(partial, _CREATE, 0o666), "wb") as file:
            file.write(body)
        partial.replace(path)
    except OSError:
        with suppress(OSError):  # what a full disk has left of it
            partial.unlink()
        raise
