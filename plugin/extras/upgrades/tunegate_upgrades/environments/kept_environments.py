"""Environments made from lock files, kept for the next run under a digest of their content. An
interrupted or damaged one is made again, and the oldest are removed when they are too large."""

from __future__ import annotations

import fcntl
import json
import os
import shutil
import sys
import sysconfig
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from types import TracebackType
from typing import IO, Self

from tunegate.artifacts.artifact_io import digest_of_document
from tunegate_upgrades.environments.uv import Uv
from tunegate_upgrades.lock_files.lock import PinnedPackage

MAX_KEPT_BYTES = 4 * 2**30
"""Room for about ten environments of the largest runtime."""
_SEAL = "tunegate-complete.json"
_REWRITTEN = "__pycache__"


class KeptEnvironments:
    """The environments in `place`. Those requested stay until this is closed, whatever others
    remove."""

    def __init__(self, place: Path, uv: Uv, indexes: Sequence[str]) -> None:
        self._place, self._uv, self._indexes = place, uv, tuple(indexes)
        self._used = ExitStack()
        self._made: set[Path] = set()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, _kind: type[BaseException] | None, _error: object, _trace: TracebackType | None
    ) -> None:
        self._used.close()

    def environment(self, pins: Sequence[PinnedPackage]) -> Path:
        """Returns the directory of an environment with exactly these packages. Raises UvError,
        OSError."""
        self._place.mkdir(parents=True, exist_ok=True)
        directory = self._place / self._key(pins)
        if directory in self._made:
            return directory  # its lock is ours, and would wait for itself
        guard = self._used.enter_context(directory.with_suffix(".lock").open("a"))
        fcntl.flock(guard, fcntl.LOCK_EX)
        if not is_whole(directory):
            self._make(pins, directory)
            self._forget(directory)
        os.utime(guard.name)
        fcntl.flock(guard, fcntl.LOCK_SH)
        self._made.add(directory)
        return directory

    def _key(self, pins: Sequence[PinnedPackage]) -> str:
        python = [sys.version, sys.executable, sysconfig.get_platform()]
        return digest_of_document([_lines(pins), python, list(self._indexes)])

    def _make(self, pins: Sequence[PinnedPackage], directory: Path) -> None:
        """Makes it elsewhere and moves it into place, so that nothing interrupted can be in it."""
        making = directory.with_suffix(".making")
        requirements = directory.with_suffix(".txt")
        for left in (making, directory):
            shutil.rmtree(left, ignore_errors=True)
        try:
            requirements.write_text("".join(f"{line}\n" for line in _lines(pins)))
            is_hashed = all(pin.hashes for pin in pins)
            self._uv.install(requirements, making, is_hashed=is_hashed)
            (making / _SEAL).write_text(json.dumps(dict(_files(making))))
            making.rename(directory)
        finally:
            shutil.rmtree(making, ignore_errors=True)
            requirements.unlink(missing_ok=True)

    def _forget(self, newest: Path) -> None:
        """Removes the least recently used environments until the rest is small enough. One that
        another run uses stays."""
        guards = sorted(self._place.glob("*.lock"), key=lambda each: -each.stat().st_mtime)
        total = _size(newest)
        for guard in guards:
            directory = guard.with_suffix("")
            if directory == newest:
                continue
            total += _size(directory)
            if total > MAX_KEPT_BYTES:
                with suppress(OSError), _alone(guard):
                    shutil.rmtree(directory, ignore_errors=True)


def is_whole(directory: Path) -> bool:
    """Returns whether each file has the size and the time that it was installed with."""
    try:
        sealed = json.loads((directory / _SEAL).read_text())
        return bool(sealed == {name: list(look) for name, look in _files(directory)})
    except (OSError, ValueError):
        return False


def _lines(pins: Sequence[PinnedPackage]) -> list[str]:
    """Returns requirements, as pip and uv read them."""
    return [
        " ".join((f"{pin.name}=={pin.version}", *(f"--hash={each}" for each in sorted(pin.hashes))))
        for pin in sorted(pins, key=lambda pin: pin.name)
    ]


def _files(directory: Path) -> Iterator[tuple[str, tuple[int, int]]]:
    for folder, folders, names in os.walk(directory):
        folders[:] = [name for name in folders if name != _REWRITTEN]
        for name in names:
            path = Path(folder) / name
            if path.name != _SEAL:
                look = path.lstat()
                yield str(path.relative_to(directory)), (look.st_size, look.st_mtime_ns)


def _size(directory: Path) -> int:
    with suppress(OSError, ValueError):
        sealed = json.loads((directory / _SEAL).read_text())
        return sum(look[0] for look in sealed.values())
    return 0


@contextmanager
def _alone(guard: Path) -> Iterator[IO[str]]:
    """Locks it. Raises BlockingIOError if another run has it."""
    with guard.open("a") as held:
        fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
        yield held
