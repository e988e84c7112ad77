from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.git_repository import Checkout, clone, new_repository
from tunegate.system.git.fetch import (
    deepen,
    ensure_here,
    fetch_branch,
    fetch_tags,
    is_commit_id,
    is_here,
    is_shallow,
)
from tunegate.system.git.process import GitProcess


@pytest.fixture
def origin(tmp_path: Path) -> Checkout:
    """Three commits on `main`, the first of them `v1`, and one on `topic`."""
    checkout = new_repository(tmp_path / "origin")
    for number in range(3):
        checkout.commit({"file": b"%d" % number})
        if not number:
            checkout.git("tag", "v1")
    checkout.git("checkout", "-q", "-b", "topic")
    checkout.commit({"file": b"topic"})
    checkout.git("checkout", "-q", "main")
    checkout.git("config", "uploadpack.allowAnySHA1InWant", "true")
    checkout.git("config", "uploadpack.allowFilter", "true")
    return checkout


@pytest.fixture
def shallow(origin: Checkout, tmp_path: Path) -> GitProcess:
    """A clone of the last commit of `main` alone."""
    made = clone(origin, tmp_path / "shallow", "--depth=1", "--no-tags", "--single-branch")
    return GitProcess(made.path)


def commit_of(origin: Checkout, name: str) -> str:
    return origin.git("rev-parse", name)


@pytest.mark.parametrize(
    ("text", "is_id"),
    [
        ("a" * 40, True),
        ("0" * 64, True),
        ("a" * 39, False),
        ("main", False),
        ("-" + "a" * 39, False),
    ],
)
def test_only_a_full_id_is_an_id(text: str, is_id: bool) -> None:
    assert is_commit_id(text) == is_id


def test_a_commit_that_a_shallow_clone_lacks_is_fetched_and_it_stays_shallow(
    origin: Checkout, shallow: GitProcess
) -> None:
    first = commit_of(origin, "v1")
    assert not is_here(shallow, first)
    assert ensure_here(shallow, first)
    assert is_here(shallow, first)
    assert is_shallow(shallow)


def test_a_commit_that_nobody_has_and_a_name_are_not_here(shallow: GitProcess) -> None:
    assert not ensure_here(shallow, "1" * 40)
    assert not ensure_here(shallow, "main")


def test_a_whole_clone_stays_whole(origin: Checkout, tmp_path: Path) -> None:
    git = GitProcess(clone(origin, tmp_path / "whole", "--single-branch").path)
    assert not is_shallow(git)
    assert ensure_here(git, commit_of(origin, "topic"))
    assert not is_shallow(git)


def test_history_is_deepened_also_for_a_commit_that_was_never_pushed(
    origin: Checkout, shallow: GitProcess
) -> None:
    assert shallow.text("rev-list", "--count", "HEAD") == "1"
    deepen(shallow, 1, commit_of(origin, "main"))
    assert shallow.text("rev-list", "--count", "HEAD") == "2"
    deepen(shallow, 1, "1" * 40)
    assert shallow.text("rev-list", "--count", "HEAD") == "3"


def test_branches_are_fetched_by_their_name_here(origin: Checkout, shallow: GitProcess) -> None:
    assert fetch_branch(shallow, "topic") == "refs/remotes/origin/topic"
    assert shallow.text("rev-parse", "origin/topic") == commit_of(origin, "topic")
    assert fetch_branch(shallow, "absent") is None
    assert fetch_branch(shallow, "--upload-pack=x") is None


def test_tags_come_with_the_history_that_leads_to_them(
    origin: Checkout, shallow: GitProcess
) -> None:
    fetch_tags(shallow, "v*")
    assert shallow.text("rev-parse", "v1") == commit_of(origin, "v1")
    assert not is_shallow(shallow)
