"""The release that a revision comes after."""

from __future__ import annotations

from typing import NamedTuple

from tunegate.edges.git.process import GitProcess


class Release(NamedTuple):
    tag: str
    commit: str


def release_before(git: GitProcess, head: str, pattern: str) -> Release | None:
    """The latest tag like `pattern` on an ancestor of `head`, not on itself: a release
    is compared with the one before. Looks at what is here, and fetches nothing."""
    # %(*objectname) is the commit of an annotated tag, and empty for another.
    listed = git.text(
        "for-each-ref",
        "--sort=-creatordate",
        f"--merged={head}",
        "--format=%(refname:short) %(objectname) %(*objectname)",
        f"refs/tags/{pattern}",
    )
    for line in (listed or "").splitlines():
        tag, *commits = line.split()
        if commits[-1] != head:
            return Release(tag.removeprefix("tags/"), commits[-1])
    return None
