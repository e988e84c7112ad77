"""Getting the commits that a shallow clone lacks, without their blobs: those of changed models are
fetched when they are read."""

from __future__ import annotations

import re

from tunegate.edges.git.process import GitProcess

_COMMIT_ID = re.compile(r"[0-9a-f]{40}|[0-9a-f]{64}")
_FETCH = (
    "fetch",
    "-q",
    "--no-tags",
    "--no-recurse-submodules",
    "--no-write-fetch-head",
    "--filter=blob:none",
)


def is_commit_id(text: str) -> bool:
    """Whether it is a full id. Anything else git would take for a branch, or an option."""
    return _COMMIT_ID.fullmatch(text) is not None


def is_here(git: GitProcess, commit: str) -> bool:
    """Whether it is a commit that this clone has."""
    if not is_commit_id(commit):
        return False
    return git.output("cat-file", "-e", f"{commit}^{{commit}}") is not None


def is_shallow(git: GitProcess) -> bool:
    return git.text("rev-parse", "--is-shallow-repository") == "true"


def ensure_here(git: GitProcess, commit: str) -> bool:
    """Whether the commit is here, once fetching it has been tried."""
    if is_here(git, commit) or not is_commit_id(commit):
        return is_here(git, commit)
    # A depth would make a full clone shallow.
    depth = ("--depth=1",) if is_shallow(git) else ()
    git.text(*_FETCH, *depth, "origin", commit)
    return is_here(git, commit)


def deepen(git: GitProcess, commits: int, *heads: str) -> None:
    """Git deepens only what it is asked for: a pull request's commit is on no branch. A commit that
    was never pushed spoils the request, so the branches are asked for next."""
    fetch = (*_FETCH, f"--deepen={commits}", "origin")
    if git.text(*fetch, *heads) is None:
        git.text(*fetch)


def fetch_default_branch(git: GitProcess) -> str | None:
    """The full name of the remote's default branch, fetched. CI checkouts do not have it."""
    said = git.text("ls-remote", "--symref", "origin", "HEAD") or ""
    named = re.match(r"ref: refs/heads/(\S+)\tHEAD", said)
    if named is None:
        return None
    return fetch_branch(git, named[1])


def fetch_branch(git: GitProcess, name: str) -> str | None:
    """The full name here of a branch of the remote, as it is there now."""
    if git.text("check-ref-format", f"refs/heads/{name}") is None:
        return None
    ref = f"refs/remotes/origin/{name}"
    depth = ("--depth=1",) if is_shallow(git) else ()
    fetched = git.text(*_FETCH, *depth, "origin", f"+refs/heads/{name}:{ref}")
    return None if fetched is None else ref


def fetch_tags(git: GitProcess, pattern: str) -> None:
    """Fetches the tags that match, with all the history that a shallow clone lacks, as a release
    may be any number of commits back."""
    whole = ("--unshallow",) if is_shallow(git) else ()
    git.text(*_FETCH, *whole, "origin", f"refs/tags/{pattern}:refs/tags/{pattern}")
