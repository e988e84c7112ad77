"""The revisions that an event of some CI means, found in a repository."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

from tunegate.artifacts.changes import Revisions
from tunegate.edges.git.repository import GitRepository

Strategy = Literal["given", "merge-commit", "push", "range", "default"]


def find_revisions(path: Path, strategy: Strategy, first: str, second: str) -> Revisions:
    """`given`: base and head as they are, '' for the usual choice. `merge-commit`: of a pull
    request with these tips of base and head; its merge commit is checked out, or its head. `push`:
    the commits before and after. `range`: two commits. Raises RevisionError, and NoBaselineError or
    EnvironmentUnfitError where there should be a base and it is not to be had."""
    repository = GitRepository(path)
    match strategy:
        case "given":
            return repository.revisions(first or None, second or None)
        case "merge-commit":
            return repository.merge_commit_revisions(first, second)
        case "push":
            return repository.push_revisions(first, second)
        case "range":
            return repository.range_revisions(first, second)
        case "default":
            return repository.revisions(None, None)


def require_checkout(path: Path, strategy: Strategy, tip: str, commit: str) -> None:
    """That the checkout is what the event is about: of a pull request with this tip, or exactly
    this commit where one is named. Raises RevisionError."""
    repository = GitRepository(path)
    if strategy == "merge-commit":
        repository.require_pull_request(tip)
    if commit:
        repository.require_checked_out(commit)


def is_of_pull_request(path: Path, commit: str, tip: str) -> bool:
    """Whether the commit is the head of the pull request with this tip, or its merge commit."""
    return bool(tip) and GitRepository(path).is_of_pull_request(commit, tip)
