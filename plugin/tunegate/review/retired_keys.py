"""Keys that an earlier version had. They are accepted, so that a configuration goes on to work, and
said once, so that somebody removes them."""

from __future__ import annotations

import sys
from functools import cache
from typing import Any

RETIRED = (("cache", "prior"), ("cache", "share-experience"))
"""The section of each, and its name there."""


def without_retired_keys(content: object) -> tuple[object, tuple[str, ...]]:
    """Returns the document without them, and the keys that it had."""
    if not isinstance(content, dict):
        return content, ()
    kept: dict[Any, Any] = dict(content)
    found = []
    for section, name in RETIRED:
        inside = kept.get(section)
        if isinstance(inside, dict) and name in inside:
            kept[section] = {key: value for key, value in inside.items() if key != name}
            found.append(f"{section}.{name}")
    return kept, tuple(found)


@cache
def say_retired(where: str, key: str) -> None:
    """Writes the line to stderr, once for each file and key: a command reads a file several
    times."""
    sys.stderr.write(f"tunegate: warning: {where}: {key} no longer does anything. Remove it.\n")
