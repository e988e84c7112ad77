"""A store in a directory: the embedded default, safe for many processes and for kill -9."""

import errno
import fcntl
import hashlib
import os
import secrets
import stat
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO
from urllib.parse import unquote_to_bytes

from tunegate_cache.stores.store import (
    MAX_OBJECT_BYTES,
    MaintainedStore,
    ObjectConflictError,
    ObjectNotFoundError,
    Pointer,
    PointerMovedError,
    StoreTimedOutError,
    StoreUnavailableError,
)
from tunegate_cache.stores.store_kind import StoreAddress, StoreKind

_PARTIAL_FOLDER = ".partial"
_ABANDONED_SECONDS = 24 * 3600
_LOCK_ENDING = ".lock"
_LOCK = os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW
_WITHOUT_LOCKS = {errno.ENOLCK, errno.ENOTSUP, errno.ENOSYS}
_POLL_SECONDS = 0.01
_PLAIN = os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK
_NO_OBJECT = {errno.ELOOP, errno.ENXIO}
"""The errors of opening a link and a socket."""
_OF_OTHERS = stat.S_IWGRP | stat.S_IWOTH
_WITHOUT_LINKS = {errno.EPERM, errno.ENOTSUP, errno.ENOSYS, errno.EMLINK}


class FileStore:
    """Objects are files under `root`. A name appears only once its whole body is on the disk.
    Whoever moves a pointer waits `lock_seconds` at most for another one: that may be stopped, or be
    somebody who writes the directory and never lets go."""

    def __init__(self, root: Path, *, lock_seconds: float = 30.0) -> None:
        self._root, self._lock_seconds = root, lock_seconds
        self._partials = root / _PARTIAL_FOLDER

    def read(self, name: str) -> bytes:
        with self._object(name) as file:
            if os.fstat(file.fileno()).st_size > MAX_OBJECT_BYTES:
                message = f"{self._path(name)}: larger than {MAX_OBJECT_BYTES} bytes"
                raise StoreUnavailableError(message)
            return file.read()

    def write(self, name: str, body: bytes) -> None:
        path = self._path(name)
        try:
            with self._written(path, body) as partial:
                _publish(partial, path)
        except FileExistsError:
            self._require_equal(name, body)
        except OSError as error:
            raise self._fault(error) from error

    def names(self, prefix: str) -> Sequence[str]:
        folder = prefix.rpartition("/")[0]
        start = self._path(folder) if folder else self._root
        if os.path.lexists(self._root) and not self._root.is_dir():  # it would look empty
            raise StoreUnavailableError(f"{self._root}: {os.strerror(errno.ENOTDIR)}")
        closed: list[OSError] = []
        paths = [path.relative_to(self._root).as_posix() for path in _files(start, closed)]
        found = sorted(name for name in paths if name.startswith(prefix))
        if closed:
            places = ", ".join(str(error.filename) for error in closed)
            raise StoreUnavailableError(f"{places}: {closed[0].strerror}", listed=found)
        return found

    def read_part(self, name: str, start: int, size: int) -> bytes:
        with self._object(name) as file:
            file.seek(start)
            return file.read(min(size, MAX_OBJECT_BYTES))

    def read_pointer(self, name: str) -> Pointer:
        body = self.read(name)
        return Pointer(body, _tag(body))

    def move_pointer(self, name: str, body: bytes, expected: str | None) -> None:
        path = self._path(name)
        try:
            with self._alone(name):
                try:
                    tag = self.read_pointer(name).tag
                except ObjectNotFoundError:
                    tag = None
                if tag != expected:
                    raise PointerMovedError(name)
                with self._written(path, body) as partial:
                    partial.replace(path)
        except OSError as error:
            raise self._fault(error) from error

    def delete(self, name: str) -> None:
        try:
            self._path(name).unlink(missing_ok=True)
        except OSError as error:
            raise self._fault(error) from error

    def write_problem(self, *folders: str) -> str:
        """Returns why nothing can be written here, or in one of `folders`, which are patterns of
        names, as far as permissions tell; '' if it can. Makes nothing."""
        inside = [path for pattern in folders for path in sorted(self._root.glob(pattern))]
        for folder in (self._root, self._partials, *inside):
            nearest = next(path for path in (folder, *folder.parents) if os.access(path, os.F_OK))
            if not nearest.is_dir():
                return f"{nearest} is no directory"
            if not os.access(nearest, os.W_OK | os.X_OK):
                return f"{nearest} cannot be written by this user"
        return ""

    def _require_equal(self, name: str, body: bytes) -> None:
        """Checks what has the name already. That may be no object: a folder or a link."""
        is_equal = False
        with suppress(ObjectNotFoundError):
            is_equal = self.read(name) == body
        if not is_equal:
            raise ObjectConflictError(f"{self._path(name)}: holds another body") from None

    @contextmanager
    def _object(self, name: str) -> Iterator[BinaryIO]:
        """Opens an object. What is no plain file is none: whoever writes a zone could put a pipe
        or a link to a device there, which nobody can read to its end."""
        try:
            with os.fdopen(os.open(self._path(name), _PLAIN), "rb") as file:
                if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
                    raise ObjectNotFoundError(name)
                yield file
        except (FileNotFoundError, NotADirectoryError, IsADirectoryError):
            raise ObjectNotFoundError(name) from None
        except OSError as error:
            if error.errno in _NO_OBJECT:
                raise ObjectNotFoundError(name) from None
            raise self._fault(error) from error

    @contextmanager
    def _alone(self, name: str) -> Iterator[None]:
        """Locks the name among the processes of all machines that share the directory, if it
        supports locks. Raises StoreTimedOutError."""
        self._make(self._partials)
        path = self._partials / f"{_tag(name.encode())}{_LOCK_ENDING}"
        deadline = time.monotonic() + self._lock_seconds
        while True:
            with _opened_lock(path) as lock:
                self._share(lock, 0o666)
                if not _took(lock, deadline):
                    message = f"{self._root}: the lock of {name} is held by somebody ({path})"
                    raise StoreTimedOutError(message)
                if _is_at(path, lock):  # else it was removed, and others lock another file
                    with suppress(OSError):
                        os.utime(lock)
                    yield
                    return

    def _path(self, name: str) -> Path:
        parts = name.split("/")
        if "\0" in name or any(part in {"", ".", "..", _PARTIAL_FOLDER} for part in parts):
            raise StoreUnavailableError(f"{self._root}: {name!r} cannot be the name of an object")
        return self._root.joinpath(*parts)

    def _make(self, folder: Path) -> None:
        """Makes a folder, with those above it. Below a root that others may write to, they may
        write to it too, whatever the umask is: several users share the cache."""
        if folder.is_dir():
            return
        if folder != self._root:
            self._make(folder.parent)
        try:
            folder.mkdir(parents=True, exist_ok=True)
        except FileExistsError as error:
            raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR)) from error
        self._share(folder, 0o7777)

    def _share(self, file: int | Path, bits: int) -> None:
        """Gives what was made these bits of the root's mode, if others may write to the root."""
        mode = self._root.stat().st_mode
        if mode & _OF_OTHERS:
            with suppress(PermissionError):  # another user made it
                os.chmod(file, mode & bits)  # noqa: PTH101, as it may be a descriptor

    @contextmanager
    def _written(self, path: Path, body: bytes) -> Iterator[Path]:
        """Yields a whole file under a name that nobody reads, to be given the name of `path`."""
        self._make(path.parent)
        self._make(self._partials)
        self._remove_abandoned()
        partial = self._partials / secrets.token_hex(16)
        try:
            self._write_through(partial, body)
            yield partial
        finally:
            partial.unlink(missing_ok=True)
        _sync_folder(path.parent)

    def _remove_abandoned(self) -> None:
        """Removes what writers that were killed a day ago left, and locks that nobody has."""
        oldest = time.time() - _ABANDONED_SECONDS
        for path in self._partials.iterdir():
            with suppress(OSError):
                if path.lstat().st_mtime >= oldest:
                    continue
                if path.name.endswith(_LOCK_ENDING):
                    _remove_free_lock(path)
                else:
                    path.unlink()

    def _write_through(self, path: Path, body: bytes) -> None:
        with path.open("xb") as file:
            self._share(file.fileno(), 0o444)
            file.write(body)
            file.flush()
            os.fsync(file.fileno())

    def _fault(self, error: OSError) -> StoreUnavailableError:
        """A folder in the place of an object is named, as where it is to be replaced."""
        place = error.filename2 or self._root
        return StoreUnavailableError(f"{place}: {error.strerror or error}")


def _tag(body: bytes) -> str:
    return hashlib.sha256(body).hexdigest()


@contextmanager
def _opened_lock(path: Path) -> Iterator[int]:
    """Opens a lock's file, and makes it if needed. Whoever may write the directory could put a link
    to a file of ours there, or a pipe."""
    descriptor = os.open(path, _LOCK, 0o666)
    try:
        yield descriptor
    finally:
        os.close(descriptor)


def _took(lock: int, deadline: float) -> bool:
    """Waits for the lock until the deadline. Returns whether this process has it now."""
    while True:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if time.monotonic() > deadline:
                return False
            time.sleep(_POLL_SECONDS)
        except OSError as error:
            if error.errno not in _WITHOUT_LOCKS:
                raise
            return True  # the protocol is right without locks, too
        else:
            return True


def _is_at(path: Path, lock: int) -> bool:
    with suppress(FileNotFoundError):
        return os.path.samestat(path.lstat(), os.fstat(lock))
    return False


def _remove_free_lock(path: Path) -> None:
    """Removes a lock's file while holding it: a holder of a removed file would lock nobody out.
    Raises OSError if somebody has it, or the file system has no locks."""
    with _opened_lock(path) as lock:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        path.unlink()


def _publish(partial: Path, path: Path) -> None:
    """Raises FileExistsError if the name is taken."""
    try:
        path.hardlink_to(partial)
    except OSError as error:
        if error.errno not in _WITHOUT_LINKS:
            raise
        # A file system without links: names prove the content, so a race here replaces equals.
        if path.exists():
            raise FileExistsError(path) from error
        partial.rename(path)


def _sync_folder(folder: Path) -> None:
    """Flushes the folder to the disk: otherwise a power cut could remove the name again."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _files(start: Path, closed: list[OSError]) -> Iterator[Path]:
    """Yields the plain files, and adds the folders that cannot be read to `closed`. Links are not
    followed: two that lead upwards would never end. Folders may be nested deeper than functions,
    and than a path can say: those hold no object."""
    folders = [str(start)]
    while folders:
        try:
            entries = list(os.scandir(folders.pop()))
        except (FileNotFoundError, NotADirectoryError):
            continue
        except OSError as error:
            closed += [error] * (error.errno != errno.ENAMETOOLONG)
            continue
        for entry in entries:
            if entry.name == _PARTIAL_FOLDER:
                continue
            if entry.is_dir(follow_symlinks=False):
                folders.append(entry.path)
            elif entry.is_file(follow_symlinks=False):
                yield Path(entry.path)


def _open(address: StoreAddress) -> FileStore:
    return FileStore(Path(os.fsdecode(unquote_to_bytes(address.parts.path))))


def _accepts(address: StoreAddress) -> bool:
    parts = address.parts
    return bool(parts.path) and not (parts.netloc or parts.query or parts.fragment)


_: type[MaintainedStore] = FileStore
DIRECTORY_STORE = StoreKind(
    form="a directory, or file:///directory",
    accepts=_accepts,
    open=_open,
    is_remote=False,
    advice=("make it a directory that this user may read and write",),
)
