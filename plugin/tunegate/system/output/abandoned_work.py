"""The Action's step that always runs: removes the working files of a run that was killed.

Standard library only, and nothing newer than Python 3.8: it runs on whatever Python a runner has.
"""

import os
import shutil
from pathlib import Path

from tunegate.system.output import owned_directory


def remove_abandoned_work(out: Path) -> None:
    """Removes working files only from a directory that a run made here and no run still uses.
    Raises OutputError, OutputInUseError, OSError."""
    owned_directory.refuse_links(out)
    work = out / owned_directory.WORK
    if not os.path.lexists(work) or not owned_directory.is_marked_here(out):
        return
    with owned_directory.held_directory(out, "clean-up"):
        shutil.rmtree(work)
