"""The release that a revision comes after."""

from __future__ import annotations

from typing import NamedTuple

from tunegate.edges.git.fetch import fetch_tags
from tunegate.edges.git.process import GitProcess
from tunegate.errors import RevisionError


class Release(NamedTuple):
    tag: str
    commit: str


def release_before(git: GitProcess, head: str, pattern: str) -> Release:
    """The latest tag like `pattern` on an ancestor of `head`, not on itself: a release
    is compared with the one before. Tags and history that a CI checkout lacks are
    fetched. Raises RevisionError."""
    found = _latest(git, head, pattern)
    if found is None:
        fetch_tags(git, pattern)
        found = _latest(git, head, pattern)
    if found is None:
        message = (
            f"--since-release: no tag {pattern} is on an ancestor of {head[:12]}. Tag a release, "
            f"or say in gate.release-tags what release tags are called."
        )
        raise RevisionError(message)
    return found


def _latest(git: GitProcess, head: str, pattern: str) -> Release | None:
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
