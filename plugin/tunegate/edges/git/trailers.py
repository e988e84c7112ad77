"""Trailers of commit messages: `Key: value` lines at their ends."""

from __future__ import annotations

from tunegate.edges.git.process import GitProcess
from tunegate.ports import Trailer


def trailers_between(git: GitProcess, base: str, head: str, key: str) -> tuple[Trailer, ...]:
    """The trailers of the commits that `head` has and `base` has not, the
    newest first. Folded lines are one."""
    shown = f"%H%x01%(trailers:key={key},valueonly,unfold,separator=%x01)"
    listed = git.text("log", "-z", f"--format={shown}", f"{base}..{head}") or ""
    found = []
    for entry in listed.split("\0"):
        commit, *values = entry.split("\x01")
        found += [Trailer(commit, value.strip()) for value in values if value.strip()]
    return tuple(found)
