"""The line of the configuration that an error is about, for an annotation beside it."""

from __future__ import annotations

import re
from pathlib import Path
from typing import NamedTuple

from tunegate.edges.config.line import line_of

_ABOUT = re.compile(
    r"(?P<file>[^\n:]+\.ya?ml): (?:line (?P<line>\d+): )?(?P<key>[a-z-]+(?:[.\[][\w.\[\]-]*)?)?"
)
"""How edges/config/file.py begins its messages."""


class ConfigPlace(NamedTuple):
    file: str
    line: int


def place_of(text: str, workspace: Path) -> ConfigPlace | None:
    """The place that the text names, or None where it is about no file of the workspace."""
    found = _ABOUT.match(text)
    if found is None:
        return None
    path = (workspace / found["file"]).resolve()
    try:
        name = path.relative_to(workspace.resolve())
        line = int(found["line"]) if found["line"] else _line_of_key(path, found["key"] or "")
    except (ValueError, OSError):
        return None
    return ConfigPlace(name.as_posix(), line)


def _line_of_key(path: Path, key: str) -> int:
    return line_of(path.read_text("utf-8"), key)
