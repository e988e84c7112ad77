"""Finds the checkout that a path is in.

Standard library only: the Action's clean-up step uses it too.
"""

import os
from pathlib import Path


def working_tree(place: Path) -> Path | None:
    """Returns the nearest checkout that contains this path, if any. It is found by its `.git`,
    which nobody can commit."""
    return next((p for p in (place, *place.parents) if os.path.lexists(p / ".git")), None)
