"""The check whether a directory is ours: no link of a checkout leads to it, and our marker says
that we made it.

Standard library only, and nothing newer than Python 3.8: the Action's clean-up step uses it too.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from tunegate.edges.git.working_tree import working_tree
from tunegate.errors import OutputError
from tunegate.regular_files import read_regular, replace

MARKER = ".owned-by-tunegate"
LOCK = ".lock"
WORK = "work"
_VERSION = 1


def refuse_links(directory: Path) -> None:
    """Raises OutputError for a directory that is a link, or that a link of a checkout leads to.
    What is named from the current directory on is taken for a checkout's, and so is all below a
    `.git`; links on the way to a checkout are the user's own."""
    for link in _links(directory):
        message = (
            f"{directory}: {link} is a link, and none is followed to where files are replaced. "
            f"Name the directory itself, or remove the link."
        )
        raise OutputError(message)


def is_marked(directory: Path) -> bool:
    """Returns whether a run of ours wrote here, perhaps on another machine."""
    return _marker(directory) is not None


def is_marked_here(directory: Path) -> bool:
    """Returns whether the marker was made in this very directory: a committed or copied one names
    another."""
    marker = _marker(directory)
    return marker is not None and marker == _identity(directory)


def mark(directory: Path) -> None:
    """Raises OSError."""
    replace(directory / MARKER, json.dumps(_identity(directory)).encode() + b"\n")


def _links(directory: Path) -> Iterator[Path]:
    """Those that may not be there, on the way to the directory."""
    parts = directory.parts[1:] if directory.is_absolute() else directory.parts
    place = Path(directory.anchor) if directory.is_absolute() else Path.cwd()
    for number, part in enumerate(parts, 1):
        place = place.parent if part == ".." else place / part
        if not place.is_symlink():
            continue
        is_last = number == len(parts)
        if is_last or not directory.is_absolute() or working_tree(place.parent) is not None:
            yield place
        place = Path(os.path.realpath(place))


def _marker(directory: Path) -> dict[str, Any] | None:
    try:
        found = json.loads(read_regular(directory / MARKER))
    except (OSError, ValueError):
        return None
    return found if isinstance(found, dict) and found.get("tunegate") == _VERSION else None


def _identity(directory: Path) -> dict[str, Any]:
    at = os.lstat(directory)
    return {"tunegate": _VERSION, "device": at.st_dev, "inode": at.st_ino}
