"""Finds the checkout of a file, tells whether its disk is full, and reads and replaces files
without following links, and without waiting for pipes. Standard library only, because the Action's
clean-up step uses it."""

import errno
import os
import shutil
import stat
from contextlib import suppress
from pathlib import Path
from typing import BinaryIO

_READ = os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK
_CREATE = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC | os.O_NOFOLLOW


def working_tree(place: Path) -> Path | None:
    """Returns the nearest checkout that contains this path, if any. It is found by its `.git`,
    which nobody can commit."""
    return next((p for p in (place, *place.parents) if os.path.lexists(p / ".git")), None)


def read_regular(path: Path, most_bytes: int | None = None) -> bytes:
    """Returns the content of a regular file. Raises OSError for a link, a directory, a pipe or a
    device, and for a file with more bytes."""
    with os.fdopen(os.open(path, _READ), "rb") as file:
        status = os.fstat(file.fileno())
        if not stat.S_ISREG(status.st_mode):
            raise OSError(errno.EINVAL, "it is not a plain file", str(path))
        if most_bytes is not None and status.st_size > most_bytes:
            raise OSError(errno.EFBIG, f"it has more than {most_bytes} bytes", str(path))
        return file.read()


def where_it_leads(path: Path) -> Path:
    """Returns the file behind links, such as those by which Kubernetes mounts a policy. A loop is
    returned as a link, which cannot be opened: `resolve` would raise a RuntimeError."""
    return Path(os.path.realpath(path))


def opened_inside(root: Path, path: str) -> BinaryIO | None:
    """Opens the file at `path` below `root`; `root` may be a link. Returns None if there is no
    regular file, or if the way to it leads over a link."""
    *directories, name = Path(path).parts
    here = os.open(root, os.O_RDONLY | os.O_DIRECTORY)
    try:
        for directory in directories:
            below = os.open(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW, dir_fd=here)
            os.close(here)
            here = below
        # Opening a pipe would wait for its writer.
        descriptor = os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK, dir_fd=here)
    except OSError:
        return None
    finally:
        os.close(here)
    if stat.S_ISREG(os.fstat(descriptor).st_mode):
        return os.fdopen(descriptor, "rb")
    os.close(descriptor)
    return None


def replace(path: Path, body: bytes) -> None:
    """Writes a file whole, or not at all, in place of what is there; a link itself is replaced.
    Raises OSError."""
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


_FULL_BYTES = 1024**2


def temporary_directory() -> Path:
    """Returns the directory of temporary files; `tempfile` names another one if this is full."""
    return Path(os.environ.get("TMPDIR") or "/tmp")  # noqa: S108 -- only its room is asked


def is_disk_full(place: Path) -> bool:
    """Returns whether the disk that holds the file, or would hold it, has next to no room; False
    if that cannot be asked."""
    try:
        existing = next(p for p in (place.absolute(), *place.absolute().parents) if p.exists())
        usage = shutil.disk_usage(existing)
    except OSError:
        return False
    return usage.total > 0 and usage.free < _FULL_BYTES


NO_ROOM = frozenset({errno.ENOSPC, errno.EDQUOT})


def lacked_room(error: BaseException) -> bool:
    """Returns whether an error, or one behind it, is that of a full disk. Words say nothing: they
    may be a model's."""
    inner = error.__cause__ or error.__context__
    is_full = isinstance(error, OSError) and error.errno in NO_ROOM
    return is_full or (inner is not None and lacked_room(inner))
