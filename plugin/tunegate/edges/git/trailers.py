"""Trailers of commit messages: `Key: value` lines at their ends."""

from __future__ import annotations

from tunegate.edges.git.fetch import deepened_until, is_shallow
from tunegate.edges.git.merge_base import is_history_whole
from tunegate.edges.git.process import GitProcess
from tunegate.ports import Trailer


def trailers_between(
    git: GitProcess, base: str, head: str, key: str, *, may_fetch: bool
) -> tuple[Trailer, ...]:
    """The trailers of the commits that `head` has and `base` has not, the newest first. Folded
    lines are one. None where a shallow clone cannot tell those commits from older ones."""

    def is_whole() -> bool:
        return is_history_whole(git, base, head)

    if is_shallow(git) and not is_whole():
        if may_fetch:
            deepened_until(git, is_whole, base, head)
        if is_shallow(git) and not is_whole():
            return ()
    shown = f"%H%x01%(trailers:key={key},valueonly,unfold,separator=%x01)"
    listed = git.text("log", "-z", f"--format={shown}", f"{base}..{head}") or ""
    found = []
    for entry in listed.split("\0"):
        commit, *values = entry.split("\x01")
        found += [Trailer(commit, value.strip()) for value in values if value.strip()]
    return tuple(found)
