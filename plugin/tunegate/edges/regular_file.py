"""Files of a working tree, read where they stand: no link is followed, and a pipe is no file."""

from __future__ import annotations

import os
import stat
from pathlib import Path
from typing import BinaryIO


def opened_inside(root: Path, path: str) -> BinaryIO | None:
    """The file at `path` below `root`, which may itself be a link; None where there is no regular
    file, or the way to it leads over a link."""
    *directories, name = Path(path).parts
    here = os.open(root, os.O_RDONLY | os.O_DIRECTORY)
    try:
        for directory in directories:
            below = os.open(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW, dir_fd=here)
            os.close(here)
            here = below
        # A pipe would be waited for.
        found = os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK, dir_fd=here)
    except OSError:
        return None
    finally:
        os.close(here)
    if stat.S_ISREG(os.fstat(found).st_mode):
        return os.fdopen(found, "rb")
    os.close(found)
    return None
