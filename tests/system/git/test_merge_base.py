"""The commit at which histories parted, in real repositories and in shallow clones."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.git_repository import Checkout, clone, new_repository
from tests.support.two_branches import commit_of, two_branches
from tunegate.system.git.fetch import is_ancestor, is_history_whole, merge_base
from tunegate.system.git.process import GitProcess


@pytest.fixture
def origin(tmp_path: Path) -> Checkout:
    return two_branches(tmp_path / "origin")


def base_of(checkout: Checkout, tip: str = "origin/main", head: str = "HEAD") -> tuple[str, str]:
    found = merge_base(GitProcess(checkout.path), tip, head)
    assert found is not None
    return found.commit, found.doubt


def many(checkout: Checkout, number: int) -> None:
    """Commits without content, faster than by one git each."""
    branch = checkout.git("symbolic-ref", "HEAD")
    parent, lines = checkout.git("rev-parse", "HEAD"), []
    for each in range(number):
        start = f"from {parent}\n" if not each else ""
        who = "A Tester <tester@example.org> 1700001000 +0000"
        lines.append(f"commit {branch}\ncommitter {who}\ndata 1\nm\n{start}\n")
    stream = checkout.path / ".git" / "stream"
    stream.write_text("".join(lines))
    checkout.git("-c", "alias.load=!git fast-import --quiet < .git/stream", "load")


def test_what_both_have_is_found(origin: Checkout) -> None:
    assert base_of(origin, "main", "topic") == (commit_of(origin, "main~1"), "")


def test_histories_that_share_nothing_have_none(origin: Checkout) -> None:
    origin.git("checkout", "-q", "--orphan", "unrelated")
    origin.commit({"c": b"c"})
    assert merge_base(GitProcess(origin.path), "main", "unrelated") is None


@pytest.mark.parametrize("commits", [3, 600])
def test_a_shallow_clone_gets_as_much_history_as_it_takes(
    origin: Checkout, tmp_path: Path, commits: int
) -> None:
    many(origin, commits)
    start = commit_of(origin, "topic~1")
    here = clone(origin, tmp_path / "clone", "--depth=1", "--no-single-branch", "--branch=topic")
    assert base_of(here) == (start, "")


def test_a_nearer_merge_base_behind_the_end_of_a_shallow_clone_is_found(tmp_path: Path) -> None:
    """The head has merged an old side branch, and a newer main by a longer way."""
    origin = new_repository(tmp_path / "origin")
    old = origin.commit({"a": b"old"}, "old")
    newer = origin.commit({"a": b"newer"}, "newer")
    origin.git("checkout", "-q", "-b", "long", newer)
    many(origin, 8)
    origin.git("reset", "-q", "--hard")
    origin.git("checkout", "-q", "-b", "topic", old)
    origin.commit({"b": b"b"}, "topic")
    origin.merge("long")
    origin.git("checkout", "-q", "main")
    origin.commit({"c": b"c"}, "main goes on")
    here = clone(origin, tmp_path / "clone", "--depth=4", "--no-single-branch", "--branch=topic")
    assert here.git("merge-base", "origin/main", "HEAD") == old
    assert base_of(here) == (newer, "")


def test_what_a_shallow_clone_cannot_know_is_said(tmp_path: Path) -> None:
    origin = two_branches(tmp_path / "origin")
    origin.git("checkout", "-q", "--orphan", "side")
    for number in range(3):
        origin.commit({"side": b"%d" % number})
    origin.git("checkout", "-q", "topic")
    origin.git("merge", "-q", "-s", "ours", "--allow-unrelated-histories", "-m", "one", "side")
    here = clone(origin, tmp_path / "clone", "--depth=3", "--no-single-branch", "--branch=topic")
    origin.path.rename(tmp_path / "moved")
    assert base_of(here)[1] == ", as far as this shallow clone knows"


def test_of_branches_that_were_merged_into_each_other_it_is_what_was_on_the_branch(
    origin: Checkout,
) -> None:
    on_main, on_topic = commit_of(origin, "main"), commit_of(origin, "topic")
    origin.merge("topic")
    origin.git("checkout", "-q", "topic")
    origin.merge(on_main)
    origin.commit({"c": b"c"})
    assert base_of(origin, "main", "topic") == (on_main, ", one of 2")
    assert base_of(origin, "topic", "main") == (on_topic, ", one of 2")


def test_a_history_is_whole_where_no_parent_is_cut_off(origin: Checkout, tmp_path: Path) -> None:
    assert is_history_whole(GitProcess(origin.path), "main~1", "topic")
    here = clone(origin, tmp_path / "clone", "--depth=1", "--no-single-branch")
    assert not is_history_whole(GitProcess(here.path), "origin/main", "origin/topic")


def test_an_ancestor_is_looked_for_in_all_that_can_be_fetched(
    origin: Checkout, tmp_path: Path
) -> None:
    start, other = commit_of(origin, "main~1"), commit_of(origin, "topic")
    many(origin, 60)
    git = GitProcess(clone(origin, tmp_path / "clone", "--depth=1").path)
    head = commit_of(origin, "main")
    assert is_ancestor(git, head, head)
    assert is_ancestor(git, start, head)
    assert not is_ancestor(git, other, head)
