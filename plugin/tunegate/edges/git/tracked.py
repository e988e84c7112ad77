"""Files of a checkout that git tracks."""

from __future__ import annotations

from pathlib import Path

from tunegate.edges.git.process import GitProcess


def first_tracked(root: Path, directory: Path) -> str | None:
    """The first file that git tracks in this directory below the working tree's `root`; '' where
    there is none, None where git cannot say."""
    inside = directory.relative_to(root).as_posix()
    listed = GitProcess(root).text("ls-files", "-z", "--cached", "--", inside)
    return None if listed is None else listed.split("\0", 1)[0]
