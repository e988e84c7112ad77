"""The environments of a runner: each is made once, under a name of its content, by whichever job
comes first. An interrupted or damaged one is made again."""

import fcntl
import hashlib
import os
import platform
import shutil
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, NamedTuple

from tunegate_environment.children import SECONDS_BETWEEN_LINES
from tunegate_environment.installing import Wanted, install
from tunegate_environment.seal import damage, seal

DAYS_KEPT = 30
_SECONDS_PER_DAY = 86400.0
_POLL_SECONDS = 0.2


class Environment(NamedTuple):
    """`key` identifies the content: the lock, the Python and the machine."""

    key: str
    python: Path


def environment_for(
    lock: Path, environment: Mapping[str, str], extra_locks: tuple[Path, ...] = ()
) -> Environment:
    """Returns the environment with exactly the content of the lock and of the extras' `extra_locks`
    locks. It is made elsewhere and moved into place when complete, so that nothing interrupted can
    be in it. Raises CalledProcessError and OSError."""
    key, cache = key_of(lock, *extra_locks), cache_directory(environment)
    directory = cache / key
    began = time.monotonic()
    with _alone(cache, key):
        broken = damage(directory) if directory.exists() else "there is none yet"
        if not broken:
            _say(f"using the environment {key[:8]}, checked", began)
            return Environment(key, directory / "bin" / "python")
        again = f" again: {broken}" if directory.exists() else f": {lock.name}"
        print(f"tunegate: making the environment {key[:8]}{again}", flush=True)
        by = _make(Wanted(lock.resolve(), directory, environment, extra_locks))
        _say(f"made the environment {key[:8]} by {by}", began)
        _forget_old(cache, key)
    return Environment(key, directory / "bin" / "python")


def key_of(*locks: Path) -> str:
    python = f"{platform.python_version()} {sys.executable} {platform.libc_ver()}"
    parts = (*(lock.read_bytes() for lock in locks), python.encode(), platform.machine().encode())
    return hashlib.sha256(b"\0".join(parts)).hexdigest()


def cache_directory(environment: Mapping[str, str]) -> Path:
    """Returns the first directory that this user may write to. In a container the runner's may be
    root's."""
    home = environment.get("HOME", "")
    directories = (environment.get("RUNNER_TOOL_CACHE"), environment.get("XDG_CACHE_HOME"))
    places = [*map(Path, filter(None, directories)), *([Path(home) / ".cache"] if home else [])]
    for place in places:
        directory = place.resolve() / "tunegate" / "env"
        with suppress(OSError):
            directory.mkdir(parents=True, exist_ok=True)
            if os.access(directory, os.W_OK | os.X_OK):
                return directory
    return Path(tempfile.mkdtemp(prefix="tunegate-env-"))


@contextmanager
def _alone(cache: Path, key: str) -> Iterator[None]:
    """Locks the environment, so that one job at a time makes or checks it. The lock ends with its
    process."""
    with (cache / f"{key}.lock").open("a") as guard:
        began = last_line_at = time.monotonic()
        while not _is_locked(guard):
            if time.monotonic() - last_line_at > SECONDS_BETWEEN_LINES:
                last_line_at = time.monotonic()
                _say(f"waiting for another job that makes the environment {key[:8]}", began)
            time.sleep(_POLL_SECONDS)
        os.utime(guard.name)  # when it was last used
        yield


def _is_locked(guard: IO[str]) -> bool:
    try:
        fcntl.flock(guard, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _make(plan: Wanted) -> str:
    """Makes it, after removing what a killed process left: others wait for the lock."""
    directory = plan.directory
    for abandoned in directory.parent.glob(f"{directory.name}.*"):
        if abandoned.is_dir():
            shutil.rmtree(abandoned, ignore_errors=True)
    making = directory.with_name(f"{directory.name}.making-{os.getpid()}")
    try:
        by = install(plan._replace(directory=making))
        seal(making)
        if directory.exists():
            shutil.rmtree(directory)
        making.rename(directory)
    finally:
        shutil.rmtree(making, ignore_errors=True)
    return by


def _forget_old(cache: Path, key: str) -> None:
    """Removes environments that no job has used for a month: each is up to a gigabyte."""
    for guard in cache.glob("*.lock"):
        age_seconds = time.time() - guard.stat().st_mtime
        if guard.stem != key and age_seconds > DAYS_KEPT * _SECONDS_PER_DAY:
            with suppress(OSError), guard.open("a") as lock_file:
                if _is_locked(lock_file):
                    shutil.rmtree(cache / guard.stem, ignore_errors=True)


def _say(step: str, began: float) -> None:
    print(f"tunegate: {step} ({time.monotonic() - began:.1f} s)", flush=True)
