"""The release before a commit, in real repositories."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.git_repository import Checkout, clone, new_repository
from tunegate.errors import RevisionError
from tunegate.system.git.compared_revisions import GitHistory


@pytest.fixture
def origin(tmp_path: Path) -> Checkout:
    """A repository with v1, a commit, v2 with a note, and two commits after it; a tag of
    something else is on the first."""
    checkout = new_repository(tmp_path / "origin")
    for message in ("one", "between", "two", "after", "last"):
        checkout.commit({"file": message.encode()}, message)
        if message == "one":
            checkout.git("tag", "v1")
        if message == "two":
            checkout.git("tag", "-a", "-m", "the second", "v2")
        if message == "after":
            checkout.git("tag", "nightly")
    return checkout


def test_the_latest_release_before_the_head_is_the_base(origin: Checkout) -> None:
    found = GitHistory(origin.path).since_release(None, "v*")
    assert (found.release, found.reason) == ("v2", "everything since release v2")
    assert found.base == origin.git("rev-parse", "v2^{commit}")


def test_a_release_itself_is_compared_with_the_one_before(origin: Checkout) -> None:
    assert GitHistory(origin.path).since_release("v2", "v*").release == "v1"


def test_a_release_on_another_branch_is_not_before(origin: Checkout) -> None:
    origin.git("checkout", "-q", "-b", "fix", "v1")
    origin.commit({"fix": b"1"}, "fix")
    origin.git("tag", "v1.1")
    assert GitHistory(origin.path).since_release("main", "v*").release == "v2"
    assert GitHistory(origin.path).since_release("fix", "v*").release == "v1"


def test_a_checkout_of_ci_has_neither_tags_nor_history_and_gets_them(
    origin: Checkout, tmp_path: Path
) -> None:
    shallow = clone(origin, tmp_path / "clone", "--depth=1", "--no-tags")
    assert shallow.git("tag") == ""
    found = GitHistory(shallow.path).since_release(None, "v*")
    assert found.release == "v2"
    assert "nightly" not in shallow.git("tag")


def test_without_a_release_one_line_says_what_to_do(origin: Checkout) -> None:
    with pytest.raises(RevisionError) as raised:
        GitHistory(origin.path).since_release(None, "release-*")
    assert str(raised.value) == (
        "--since-release: no tag release-* is on an ancestor of "
        f"{origin.git('rev-parse', 'HEAD')[:12]}. Tag a release, or say in "
        "gate.release-tags what release tags are called."
    )


def test_the_rules_are_those_of_the_newest_commit_that_is_merged(origin: Checkout) -> None:
    history = GitHistory(origin.path)
    assert history.merged_before(None) == origin.git("rev-parse", "main")
    assert history.merged_before("v1") == origin.git("rev-parse", "v1")
    origin.git("checkout", "-q", "-b", "fix", "v1")
    head = origin.commit({"fix": b"1"}, "fix")
    assert history.merged_before(head) == origin.git("rev-parse", "v1")


def test_without_a_default_branch_nothing_is_merged(tmp_path: Path) -> None:
    alone = new_repository(tmp_path / "alone", "work")
    alone.commit({"file": b"1"})
    alone.git("branch", "other")
    assert GitHistory(alone.path).merged_before(None) is None
