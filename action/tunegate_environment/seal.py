"""The seal of a complete environment: its list of files, which reveals whatever was lost, changed
or added.

Usually each file's size and times suffice. If they differ, as after an environment was restored on
another machine, the content decides.
"""

import hashlib
import json
import os
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path

SEAL = ".complete"
_REWRITTEN = "__pycache__"
"""Python writes it at run time, and checks it against the source."""

Look = tuple[int, int, int]
"""The size, and the times of the last change of content and of anything."""


def seal(directory: Path) -> None:
    """Seals the directory, as the last step: without a seal it is incomplete."""
    files = {name: (*_look(path), _digest(path)) for name, path in _files(directory)}
    _write(directory, files)


def damage(directory: Path) -> str:
    """Returns the first thing that differs from the installation, or an empty string."""
    sealed = _read_seal(directory)
    if sealed is None:
        return "it is not complete"
    files = dict(_files(directory))
    if missing := sorted(sealed.keys() - files.keys()):
        return f"{missing[0]} is missing"
    if added := sorted(files.keys() - sealed.keys()):
        return f"{added[0]} was added"
    suspects = {name: path for name, path in files.items() if _look(path) != sealed[name][:3]}
    for name, path in sorted(suspects.items()):
        if _digest(path) != sealed[name][3]:
            return f"{name} is not what was installed"
    if suspects:
        looks = {name: (*_look(path), sealed[name][3]) for name, path in suspects.items()}
        with suppress(OSError):  # it may be another user's: then this check is as slow next time
            _write(directory, {**sealed, **looks})
    return ""


def _files(directory: Path) -> Iterator[tuple[str, Path]]:
    for folder, folders, names in os.walk(directory):
        folders[:] = [name for name in folders if name != _REWRITTEN]
        links = [name for name in folders if (Path(folder) / name).is_symlink()]
        for name in (*names, *links):
            path = Path(folder) / name
            if path.name != SEAL:
                yield str(path.relative_to(directory)), path


def _look(path: Path) -> Look:
    status = path.lstat()
    return status.st_size, status.st_mtime_ns, status.st_ctime_ns


def _digest(path: Path) -> str:
    """Returns a file's digest; a link's is its destination."""
    if path.is_symlink():
        return f"link:{path.readlink()}"
    try:
        with path.open("rb") as content:
            return hashlib.file_digest(content, "sha256").hexdigest()
    except OSError:
        return "unreadable"


def _read_seal(directory: Path) -> Mapping[str, tuple[int, int, int, str]] | None:
    try:
        rows = json.loads((directory / SEAL).read_text(encoding="utf-8"))
        return {str(name): (int(a), int(b), int(c), str(d)) for name, (a, b, c, d) in rows.items()}
    except (OSError, ValueError, TypeError, AttributeError):
        return None


def _write(directory: Path, files: Mapping[str, tuple[int, int, int, str]]) -> None:
    beside = directory.with_name(f"{directory.name}.seal-{os.getpid()}")
    try:
        beside.write_text(json.dumps(files), encoding="utf-8")
        beside.replace(directory / SEAL)
    finally:
        beside.unlink(missing_ok=True)
