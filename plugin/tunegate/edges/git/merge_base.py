"""The commit at which two histories parted, also in a clone that has only the ends of them."""

from __future__ import annotations

from typing import NamedTuple

from tunegate.edges.git.fetch import deepened_until, is_shallow
from tunegate.edges.git.process import GitProcess


class SharedCommit(NamedTuple):
    """A commit shared by two histories; `doubt` says in words for the report why another one may be
    nearer, '' if not."""

    commit: str
    doubt: str


def merge_base(git: GitProcess, tip: str, head: str) -> SharedCommit | None:
    """The newest commit that the head shares with the branch of this tip. History that a shallow
    clone lacks is fetched.

    Branches that were merged into each other share several. Then it is the one that was on the
    branch: what the branch got since is not the head's.
    """

    def is_certain() -> bool:
        shared = _shared(git, tip, head)
        return bool(shared) and is_history_whole(git, shared[0], head)

    is_cut = not deepened_until(git, is_certain, tip, head) and is_shallow(git)
    shared = _shared(git, tip, head)
    if not shared:
        return None
    if len(shared) > 1:
        return SharedCommit(_on_branch(git, tip, shared), f", one of {len(shared)}")
    return SharedCommit(shared[0], ", as far as this shallow clone knows" if is_cut else "")


def is_history_whole(git: GitProcess, base: str, head: str) -> bool:
    """Returns whether each commit that the head has and the base has not is known with its parents.
    A shallow clone cuts them off, and git then knows the commit as the first one of a
    repository."""
    line = ("rev-list", "--max-parents=0", "--max-count=1", f"{base}..{head}")
    return git.text(*line) == ""


def is_ancestor(git: GitProcess, ancestor: str, commit: str) -> bool:
    """Returns whether the commit's history has the ancestor. What a shallow clone lacks is
    fetched."""

    def is_one() -> bool:
        return git.text("merge-base", "--is-ancestor", ancestor, commit) is not None

    return ancestor == commit or deepened_until(git, is_one, commit)


def _shared(git: GitProcess, tip: str, head: str) -> list[str]:
    """An empty answer in a shallow clone means 'cannot walk', not 'no ancestor'."""
    return (git.text("merge-base", "--all", tip, head) or "").split()


def _on_branch(git: GitProcess, tip: str, shared: list[str]) -> str:
    """The first of these that the branch itself was at, along first parents."""
    for commit in shared:
        line = ("rev-list", "--first-parent", tip, "--not", f"{commit}^@")
        if commit in (git.text(*line) or "").split():
            return commit
    return shared[0]
