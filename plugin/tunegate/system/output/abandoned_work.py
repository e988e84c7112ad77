"""The Action's step that always runs: removes the working files of a run that was killed.

Standard library only, and nothing newer than Python 3.8: it runs on whatever Python a runner has.
"""

from __future__ import annotations

import os
import shutil
from pathlib import Path

from tunegate.system.output.owned_directory import (
    WORK,
    held_directory,
    is_marked_here,
    refuse_links,
)


def remove_abandoned_work(out: Path) -> None:
    """Removes working files only from a directory that a run made here and no run still uses.
    Raises OutputError, OutputInUseError, OSError."""
    refuse_links(out)
    work = out / WORK
    if not os.path.lexists(work) or not is_marked_here(out):
        return
    with held_directory(out, "clean-up"):
        shutil.rmtree(work)
