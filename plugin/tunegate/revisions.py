"""The revisions that an event of some CI means, found in a repository."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

from tunegate.artifacts.changes import Revisions
from tunegate.edges.git import GitRepository

Strategy = Literal["given", "merge-commit", "push", "range", "default"]


def find_revisions(path: Path, strategy: Strategy, first: str, second: str) -> Revisions:
    """`given`: base and head as they are, '' for the usual choice. `merge-commit`: of a pull request
    with these tips of base and head; its merge commit is checked out, or its head. `push`: the commits before and after. `range`: two
    commits. Raises RevisionError."""
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
