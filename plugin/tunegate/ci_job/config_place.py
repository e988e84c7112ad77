"""The line of the configuration that an error is about, for an annotation beside it."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

from tunegate.edges.config.line import line_of
from tunegate.errors import ConfigKey


class ConfigPlace(NamedTuple):
    file: str
    line: int


def place_of(about: ConfigKey | None, workspace: Path) -> ConfigPlace | None:
    """Returns the file and line to show it at, or None where it is about no file of the
    workspace."""
    if about is None:
        return None
    path = (workspace / about.file).resolve()
    try:
        name = path.relative_to(workspace.resolve())
        line = about.line or line_of(path.read_text("utf-8"), about.key)
    except (ValueError, OSError):
        return None
    return ConfigPlace(name.as_posix(), line)
