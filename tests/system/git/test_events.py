"""Base and head of every event, in real repositories and real shallow clones of them."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.git_repository import Checkout, actions_checkout, clone
from tests.support.two_branches import commit_of, two_branches
from tunegate.errors import EnvironmentUnfitError, NoBaselineError, RevisionError
from tunegate.system.git.events import GitEvents
from tunegate.system.git.repository import GitRepository

NOTHING = "0" * 40


@pytest.fixture
def origin(tmp_path: Path) -> Checkout:
    return two_branches(tmp_path / "origin")


# pull requests -------------------------------------------------------------------


def test_a_merge_commit_of_depth_one_fetches_its_first_parent_without_blobs(
    origin: Checkout, tmp_path: Path
) -> None:
    tip, head = commit_of(origin, "main"), commit_of(origin, "topic")
    merge = origin.merge("topic")
    here = actions_checkout(origin, tmp_path / "job", merge)
    found = GitEvents(here.path).merge_commit_revisions(tip, head)
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
    found = repository.merge_commit_revisions(tip, commit_of(origin, "topic"))
    repository.files(found.base or "")
    assert repository.read(tip, "a.onnx") == b"a" * 2000
    assert here.has_object(commit_of(origin, f"{tip}:a.onnx"))
    assert not here.has_object(commit_of(origin, f"{tip}:c.onnx"))


def test_a_merge_commit_whose_parent_is_out_of_reach_is_not_judged(
    origin: Checkout, tmp_path: Path
) -> None:
    tips = commit_of(origin, "main"), commit_of(origin, "topic")
    here = actions_checkout(origin, tmp_path / "job", origin.merge("topic"))
    origin.path.rename(tmp_path / "moved")
    with pytest.raises(EnvironmentUnfitError, match="could not be fetched"):
        GitEvents(here.path).merge_commit_revisions(*tips)


def test_the_base_of_an_event_may_be_older_than_the_first_parent(
    origin: Checkout, tmp_path: Path
) -> None:
    named, head = commit_of(origin, "main"), commit_of(origin, "topic")
    for number in range(60):
        origin.commit({"readme": str(number).encode()})
    tip = commit_of(origin, "main")
    here = actions_checkout(origin, tmp_path / "job", origin.merge("topic"))
    assert GitEvents(here.path).merge_commit_revisions(named, head).base == tip


def test_a_merge_commit_with_another_base_than_the_events_is_not_judged(
    origin: Checkout, tmp_path: Path
) -> None:
    head, tip = commit_of(origin, "topic"), commit_of(origin, "main")
    merge = origin.merge("topic")
    later = origin.commit({"readme": b"later"})
    here = actions_checkout(origin, tmp_path / "job", merge)
    with pytest.raises(RevisionError, match="is not of the base"):
        GitEvents(here.path).merge_commit_revisions(later, head)
    assert GitEvents(here.path).merge_commit_revisions(tip, head).base == tip


def test_a_checkout_of_something_else_is_not_the_pull_request(origin: Checkout) -> None:
    tip, head = commit_of(origin, "main"), commit_of(origin, "topic")
    with pytest.raises(RevisionError, match="neither the pull request's head"):
        GitEvents(origin.path).merge_commit_revisions(tip, head)
    with pytest.raises(RevisionError, match="the event is about"):
        GitEvents(origin.path).require_checked_out(head)
    GitEvents(origin.path).require_checked_out(tip)


def test_a_pull_requests_own_head_is_compared_with_the_merge_base(
    origin: Checkout, tmp_path: Path
) -> None:
    start, tip, head = (commit_of(origin, name) for name in ("main~1", "main", "topic"))
    # A fork's head is on no branch of the repository.
    origin.git("update-ref", "refs/pull/1/head", head)
    origin.git("branch", "-q", "-D", "topic")
    here = actions_checkout(origin, tmp_path / "job", head)
    found = GitEvents(here.path).merge_commit_revisions(tip, head)
    assert (found.base, found.head, found.policy) == (start, head, tip)
    assert found.reason == "merge base of the pull request"


# pushes and the merge queue ------------------------------------------------------


def test_a_push_is_compared_with_what_was_there_before(origin: Checkout, tmp_path: Path) -> None:
    before, after = commit_of(origin, "main~1"), commit_of(origin, "main")
    here = actions_checkout(origin, tmp_path / "job", after)
    found = GitEvents(here.path).push_revisions(before, after)
    assert (found.base, found.reason) == (before, "the commit before the push")


@pytest.mark.parametrize("zeros", ["0" * 40, "0" * 64])
def test_a_new_branch_is_compared_with_its_merge_base(
    origin: Checkout, tmp_path: Path, zeros: str
) -> None:
    after = commit_of(origin, "topic")
    here = actions_checkout(origin, tmp_path / "job", after)
    found = GitEvents(here.path).push_revisions(zeros, after)
    assert found.base == commit_of(origin, "main~1")
    assert found.reason == "new branch: merge base with origin/main"


def test_a_new_branch_without_a_remote_cannot_know_its_base(
    origin: Checkout, tmp_path: Path
) -> None:
    after = commit_of(origin, "topic")
    here = actions_checkout(origin, tmp_path / "job", after)
    origin.path.rename(tmp_path / "moved")
    with pytest.raises(EnvironmentUnfitError, match="default branch could not be fetched"):
        GitEvents(here.path).push_revisions(NOTHING, after)


def test_a_forced_push_that_lost_its_commit_is_compared_with_the_merge_base(
    origin: Checkout,
) -> None:
    found = GitEvents(origin.path).push_revisions("f" * 40, commit_of(origin, "topic"))
    assert found.base == commit_of(origin, "main~1")
    assert found.reason == "ffffffffffff is gone (forced push): merge base with main"


def test_a_forced_push_to_the_default_branch_has_nothing_to_compare_with(
    origin: Checkout,
) -> None:
    with pytest.raises(NoBaselineError, match=r"^ffffffffffff is gone \(forced push\)"):
        GitEvents(origin.path).push_revisions("f" * 40, commit_of(origin, "main"))


def test_a_merge_queue_names_both_commits(origin: Checkout, tmp_path: Path) -> None:
    base, head = commit_of(origin, "main"), commit_of(origin, "topic")
    here = actions_checkout(origin, tmp_path / "job", head)
    found = GitEvents(here.path).range_revisions(base, head)
    assert (found.base, found.head, found.reason) == (base, head, "named by the event")


def test_a_commit_of_an_event_is_never_an_option_of_git(origin: Checkout) -> None:
    with pytest.raises(RevisionError, match="--base"):
        GitEvents(origin.path).range_revisions("--upload-pack=touch pwned", "main")
    assert not (origin.path / "pwned").exists()


def test_fetching_into_a_full_clone_does_not_make_it_shallow(
    origin: Checkout, tmp_path: Path
) -> None:
    here = clone(origin, tmp_path / "clone")
    late = origin.commit({"late": b"late"})
    assert GitEvents(here.path).push_revisions(late, commit_of(here, "HEAD")).base == late
    assert here.git("rev-parse", "--is-shallow-repository") == "false"


def test_a_job_in_a_kept_clone_takes_no_branch_that_the_remote_no_longer_has(
    origin: Checkout, tmp_path: Path
) -> None:
    job = clone(origin, tmp_path / "kept")
    job.git("checkout", "-q", "--detach", "origin/topic")
    job.git("branch", "-q", "-D", "main")
    repository = GitRepository(job.path)
    assert repository.asked_revisions("main", None).base == commit_of(origin, "main~1")
    origin.git("branch", "-m", "main", "trunk")
    with pytest.raises(RevisionError, match='the remote has no branch "main" any more'):
        repository.asked_revisions("main", None)
    origin.path.rename(tmp_path / "out of reach")
    assert repository.asked_revisions("main", None).base == job.git("rev-parse", "origin/main~1")
