"""A repository with a branch that somebody may want to merge."""

from __future__ import annotations

from pathlib import Path

from tests.support.git_repository import Checkout, new_repository


def two_branches(path: Path) -> Checkout:
    """A repository with two branches: main has start and second, topic one commit on start."""
    checkout = new_repository(path)
    checkout.commit({"a.onnx": b"a" * 2000, "b.onnx": b"b" * 2000}, "start")
    checkout.git("branch", "topic")
    checkout.commit({"readme": b"second"}, "second")
    checkout.git("checkout", "-q", "topic")
    checkout.commit({"a.onnx": b"A" * 2000}, "topic")
    checkout.git("checkout", "-q", "main")
    return checkout


def commit_of(checkout: Checkout, revision: str) -> str:
    return checkout.git("rev-parse", revision)
