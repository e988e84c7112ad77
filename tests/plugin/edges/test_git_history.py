"""Base and head of every event, in real repositories and real shallow clones of them."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.git_repository import Checkout, actions_checkout, clone, new_repository
from tunegate.edges.git import GitRepository
from tunegate.edges.git_history import GitHistory
from tunegate.errors import RevisionError

NOTHING = "0" * 40


@pytest.fixture
def origin(tmp_path: Path) -> Checkout:
    """main: start, second. topic: one commit on start."""
    checkout = new_repository(tmp_path / "origin")
    checkout.commit({"a.onnx": b"a" * 2000, "b.onnx": b"b" * 2000}, "start")
    checkout.git("branch", "topic")
    checkout.commit({"readme": b"second"}, "second")
    checkout.git("checkout", "-q", "topic")
    checkout.commit({"a.onnx": b"A" * 2000}, "topic")
    checkout.git("checkout", "-q", "main")
    return checkout


def commit_of(checkout: Checkout, revision: str) -> str:
    return checkout.git("rev-parse", revision)


def test_base_and_head_are_taken_literally(origin: Checkout) -> None:
    found = GitHistory(origin.path).revisions("topic", "main~1")
    assert found.base == commit_of(origin, "topic")
    assert found.head == commit_of(origin, "main~1")
    assert found.reason == "given by --base"


def test_an_annotated_tag_is_its_commit(origin: Checkout) -> None:
    origin.git("tag", "-a", "-m", "one", "v1", "main~1")
    assert GitHistory(origin.path).revisions("v1", None).base == commit_of(origin, "main~1")


@pytest.mark.parametrize("revision", ["no-such", "", "--all", "HEAD:a.onnx", "f" * 40, "a b\nc"])
def test_a_base_that_does_not_exist_is_one_clear_line(origin: Checkout, revision: str) -> None:
    with pytest.raises(RevisionError) as raised:
        GitHistory(origin.path).revisions(revision, None)
    assert str(raised.value) == (
        f'--base: "{revision}" is no revision of {origin.path}. Name a commit, branch or '
        f"tag that is here, or fetch it."
    )


def test_a_head_that_does_not_exist_names_its_option(origin: Checkout) -> None:
    with pytest.raises(RevisionError, match=r'^--head: "no-such" is no revision of'):
        GitHistory(origin.path).revisions(None, "no-such")


def test_a_branch_is_compared_with_its_merge_base(origin: Checkout) -> None:
    found = GitHistory(origin.path).revisions(None, "topic")
    assert found.base == commit_of(origin, "main~1")
    assert found.reason == "merge base with main"


def test_a_remote_default_branch_of_any_name_is_found(origin: Checkout, tmp_path: Path) -> None:
    origin.git("branch", "-m", "main", "trunk")
    here = clone(origin, tmp_path / "clone", "--branch=topic")
    found = GitHistory(here.path).revisions(None, None)
    assert (found.base, found.reason) == (
        commit_of(origin, "trunk~1"),
        "merge base with origin/trunk",
    )


def test_a_tag_named_like_the_branch_does_not_mislead(origin: Checkout) -> None:
    origin.git("tag", "main", "topic")
    assert GitHistory(origin.path).revisions(None, "topic").base == commit_of(
        origin, "refs/heads/main~1"
    )


def test_on_the_default_branch_the_parent_is_the_base(origin: Checkout) -> None:
    found = GitHistory(origin.path).revisions(None, None)
    assert (found.base, found.reason) == (
        commit_of(origin, "main~1"),
        "the head is on main: its parent",
    )


def test_an_older_commit_of_the_default_branch_has_its_parent_too(origin: Checkout) -> None:
    origin.commit({"readme": b"third"})
    found = GitHistory(origin.path).revisions(None, "main~1")
    assert found.base == commit_of(origin, "main~2")


def test_without_a_default_branch_the_parent_is_the_base(origin: Checkout) -> None:
    origin.git("branch", "-m", "main", "trunk")
    found = GitHistory(origin.path).revisions(None, None)
    assert found.base == commit_of(origin, "trunk~1")
    assert found.reason == "there is no default branch to compare with: its parent"


def test_the_first_commit_has_no_base(tmp_path: Path) -> None:
    new_repository(tmp_path / "new").commit({"a": b"a"})
    found = GitHistory(tmp_path / "new").revisions(None, None)
    assert (found.base, found.reason) == (None, "the head is on main, and it has no parent")


def test_a_repository_without_commits_says_so(tmp_path: Path) -> None:
    new_repository(tmp_path / "new")
    with pytest.raises(RevisionError, match=r'^--head: "HEAD" is no revision'):
        GitHistory(tmp_path / "new").revisions(None, None)


def test_an_unrelated_branch_has_every_model_checked(origin: Checkout) -> None:
    origin.git("checkout", "-q", "--orphan", "unrelated")
    origin.commit({"c": b"c"})
    found = GitHistory(origin.path).revisions(None, None)
    assert found.base is None
    assert found.reason == "no merge base with main was found, so every model is checked"


def test_a_shallow_clone_on_the_default_branch_fetches_the_parent(
    origin: Checkout, tmp_path: Path
) -> None:
    here = clone(origin, tmp_path / "clone", "--depth=1")
    found = GitHistory(here.path).revisions(None, None)
    assert found.base == commit_of(origin, "main~1")


def test_a_shallow_clone_that_cannot_walk_to_the_merge_base_deepens(
    origin: Checkout, tmp_path: Path
) -> None:
    for number in range(60):
        origin.commit({"readme": str(number).encode()})
    here = clone(origin, tmp_path / "clone", "--depth=1", "--no-single-branch", "--branch=topic")
    found = GitHistory(here.path).revisions(None, None)
    assert found.base == commit_of(origin, "main~61")
    assert found.reason == "merge base with origin/main"


def test_a_shallow_clone_without_its_remote_checks_every_model(
    origin: Checkout, tmp_path: Path
) -> None:
    here = clone(origin, tmp_path / "clone", "--depth=1", "--no-single-branch", "--branch=topic")
    origin.path.rename(tmp_path / "moved")
    found = GitHistory(here.path).revisions(None, None)
    assert (found.base, found.reason) == (
        None,
        "no merge base with origin/main was found, so every model is checked",
    )


# pull requests -------------------------------------------------------------------


def test_a_merge_commit_of_depth_one_fetches_its_first_parent_without_blobs(
    origin: Checkout, tmp_path: Path
) -> None:
    tip = commit_of(origin, "main")
    merge = origin.merge("topic")
    here = actions_checkout(origin, tmp_path / "job", merge)
    found = GitHistory(here.path).merge_commit_revisions()
    assert (found.base, found.head) == (tip, merge)
    assert found.reason == "first parent of the merge commit"
    assert not here.has_object(commit_of(origin, f"{tip}:a.onnx"))


def test_only_the_blobs_that_are_read_are_fetched(origin: Checkout, tmp_path: Path) -> None:
    origin.commit({"c.onnx": b"c" * 2000}, "to be removed by the topic")
    origin.git("checkout", "-q", "topic")
    origin.git("merge", "-q", "--no-ff", "-m", "again", "main")
    origin.commit({"c.onnx": None})
    origin.git("checkout", "-q", "main")
    tip = commit_of(origin, "main")
    here = actions_checkout(origin, tmp_path / "job", origin.merge("topic"))
    repository = GitRepository(here.path)
    repository.files(repository.merge_commit_revisions().base or "")
    assert repository.read(tip, "a.onnx") == b"a" * 2000
    assert here.has_object(commit_of(origin, f"{tip}:a.onnx"))
    assert not here.has_object(commit_of(origin, f"{tip}:c.onnx"))


def test_a_merge_commit_whose_parent_is_out_of_reach_checks_every_model(
    origin: Checkout, tmp_path: Path
) -> None:
    here = actions_checkout(origin, tmp_path / "job", origin.merge("topic"))
    origin.path.rename(tmp_path / "moved")
    found = GitHistory(here.path).merge_commit_revisions()
    assert found.base is None
    assert found.reason.endswith("could not be fetched, so every model is checked")


def test_a_pull_requests_own_head_is_compared_with_the_merge_base(
    origin: Checkout, tmp_path: Path
) -> None:
    start, tip, head = (commit_of(origin, name) for name in ("main~1", "main", "topic"))
    # A fork's head is on no branch of the repository.
    origin.git("update-ref", "refs/pull/1/head", head)
    origin.git("branch", "-q", "-D", "topic")
    here = actions_checkout(origin, tmp_path / "job", head)
    found = GitHistory(here.path).merge_commit_revisions(tip, head)
    assert (found.base, found.head) == (start, head)
    assert found.reason == "merge base of the pull request"


# pushes and the merge queue ------------------------------------------------------


def test_a_push_is_compared_with_what_was_there_before(origin: Checkout, tmp_path: Path) -> None:
    before, after = commit_of(origin, "main~1"), commit_of(origin, "main")
    here = actions_checkout(origin, tmp_path / "job", after)
    found = GitHistory(here.path).push_revisions(before, after)
    assert (found.base, found.reason) == (before, "the commit before the push")


@pytest.mark.parametrize("zeros", ["0" * 40, "0" * 64])
def test_a_new_branch_is_compared_with_its_merge_base(
    origin: Checkout, tmp_path: Path, zeros: str
) -> None:
    after = commit_of(origin, "topic")
    here = actions_checkout(origin, tmp_path / "job", after)
    found = GitHistory(here.path).push_revisions(zeros, after)
    assert found.base == commit_of(origin, "main~1")
    assert found.reason == "new branch: merge base with origin/main"


def test_a_new_branch_without_a_remote_has_every_model_checked(
    origin: Checkout, tmp_path: Path
) -> None:
    after = commit_of(origin, "topic")
    here = actions_checkout(origin, tmp_path / "job", after)
    origin.path.rename(tmp_path / "moved")
    found = GitHistory(here.path).push_revisions(NOTHING, after)
    assert found.base is None
    assert found.reason == (
        "new branch: no default branch to compare with, so every model is checked"
    )


def test_a_forced_push_that_lost_its_commit_is_compared_with_the_merge_base(
    origin: Checkout,
) -> None:
    found = GitHistory(origin.path).push_revisions("f" * 40, commit_of(origin, "topic"))
    assert found.base == commit_of(origin, "main~1")
    assert found.reason == "ffffffffffff is gone (forced push): merge base with main"


def test_a_forced_push_to_the_default_branch_has_every_model_checked(origin: Checkout) -> None:
    found = GitHistory(origin.path).push_revisions("f" * 40, commit_of(origin, "main"))
    assert found.base is None
    assert found.reason == "ffffffffffff is gone (forced push), so every model is checked"


def test_a_merge_queue_names_both_commits(origin: Checkout, tmp_path: Path) -> None:
    base, head = commit_of(origin, "main"), commit_of(origin, "topic")
    here = actions_checkout(origin, tmp_path / "job", head)
    found = GitHistory(here.path).range_revisions(base, head)
    assert (found.base, found.head, found.reason) == (base, head, "named by the event")


def test_a_commit_of_an_event_is_never_an_option_of_git(origin: Checkout) -> None:
    with pytest.raises(RevisionError, match="--base"):
        GitHistory(origin.path).range_revisions("--upload-pack=touch pwned", "main")
    assert not (origin.path / "pwned").exists()


def test_fetching_into_a_full_clone_does_not_make_it_shallow(
    origin: Checkout, tmp_path: Path
) -> None:
    here = clone(origin, tmp_path / "clone")
    late = origin.commit({"late": b"late"})
    assert GitHistory(here.path).push_revisions(late, commit_of(here, "HEAD")).base == late
    assert here.git("rev-parse", "--is-shallow-repository") == "false"


def test_a_release_is_the_latest_tag_of_a_commit(origin: Checkout) -> None:
    history = GitHistory(origin.path)
    head = commit_of(origin, "main")
    assert history.release(head) == ""
    assert history.release("") == ""
    origin.git("tag", "v1.0.0", head)
    assert history.release(head) == "v1.0.0"
    assert history.release(commit_of(origin, "topic")) == ""


def test_the_change_before_the_last_one_is_counted_along_first_parents(origin: Checkout) -> None:
    history = GitHistory(origin.path)
    main = commit_of(origin, "main")
    assert history.before_last_change(main, "a.onnx") is None
    origin.commit({"a.onnx": b"2" * 2000}, "again")
    origin.commit({"readme": b"third"}, "third")
    found = history.before_last_change(commit_of(origin, "main"), "a.onnx", "a.onnx.dvc")
    assert found == (commit_of(origin, "main~3"), 3)
    assert history.before_last_change(commit_of(origin, "main"), "*.onnx") is None
