from pathlib import Path

import msgspec
import pytest

from tests.support.git_repository import Checkout, clone, commit_of, two_branches
from tests.support.present import present
from tunegate.artifacts.changes import Revisions
from tunegate.ci import protocol
from tunegate.ci.job import is_of_pull_request, job_revisions, reported_commit
from tunegate.errors import EnvironmentUnfitError, RevisionError


@pytest.fixture
def origin(tmp_path: Path) -> Checkout:
    return two_branches(tmp_path / "origin")


@pytest.fixture
def here(origin: Checkout, tmp_path: Path) -> Checkout:
    """A clone in which the topic is checked out, and whose branches are not fetched again."""
    made = clone(origin, tmp_path / "clone")
    made.git("checkout", "-q", "--detach", commit_of(origin, "topic"))
    return made


def sides(
    here: Checkout,
    revisions: protocol.RevisionChoice,
    *,
    step: protocol.StepName = "run",
    checked_out: str = "",
    **asked: str,
) -> Revisions | None:
    request = protocol.JobRequest(
        words=(step,),
        step=step,
        out=Path(),
        repository=here.path,
        asked=protocol.AskedRevisions(base=asked.get("base", ""), head=asked.get("head", "")),
    )
    event = protocol.JobEvent(
        revisions=revisions, checked_out=checked_out, tip=commit_of(here, "HEAD")
    )
    return job_revisions(request, event)


def test_a_commit_can_be_the_target(origin: Checkout, here: Checkout) -> None:
    tip = commit_of(origin, "main~1")
    revisions = present(sides(here, protocol.MergeBase(target=tip)))
    assert (revisions.base, revisions.policy) == (tip, "")


@pytest.mark.parametrize("name", ["gone", "-x", "a b", "x:refs/heads/main", "*", "x..y", "@{-1}"])
def test_what_is_no_branch_of_the_remote_is_no_target(here: Checkout, name: str) -> None:
    with pytest.raises(EnvironmentUnfitError, match="could not be fetched"):
        sides(here, protocol.MergeBase(target=name))


def test_why_a_branch_cannot_be_fetched_is_said_by_git(origin: Checkout, here: Checkout) -> None:
    """A branch that the remote has no more is in the way here."""
    here.git("update-ref", "refs/remotes/origin/stack", "HEAD")
    origin.git("branch", "stack/one", "main")
    with pytest.raises(EnvironmentUnfitError, match=r"stack/one could not be fetched \(.*/stack'"):
        sides(here, protocol.MergeBase(target="stack/one"))


@pytest.mark.parametrize("of_push", [True, False])
def test_a_default_branch_that_is_named_is_the_one_of_today(
    origin: Checkout, here: Checkout, of_push: bool
) -> None:
    origin.git("branch", "-q", "trunk", "main~1")
    choice = (
        protocol.Push(before="0" * 40, after=commit_of(here, "HEAD"), default_branch="trunk")
        if of_push
        else protocol.Usual(default_branch="trunk")
    )
    assert "merge base with origin/trunk" in present(sides(here, choice)).reason


def test_on_the_default_branch_the_parent_is_the_base(origin: Checkout, here: Checkout) -> None:
    here.git("checkout", "-q", "--detach", commit_of(origin, "main"))
    revisions = present(sides(here, protocol.Usual(default_branch="main")))
    assert revisions.base == commit_of(origin, "main~1")


def test_an_unreachable_default_branch_is_no_reason_to_take_another(here: Checkout) -> None:
    with pytest.raises(EnvironmentUnfitError, match=r"fetched \(couldn't find"):
        sides(here, protocol.Usual(default_branch="gone"))


def test_another_checkout_than_the_events_is_refused_but_for_a_head_that_is_named(
    origin: Checkout, here: Checkout
) -> None:
    main, topic = commit_of(origin, "main"), commit_of(here, "HEAD")
    with pytest.raises(RevisionError, match="the event is about"):
        sides(here, protocol.Usual(), checked_out=main)
    assert sides(here, protocol.Usual(), checked_out=main, base=main, head=topic) is not None


def test_a_later_step_looks_again_only_where_the_event_says_both_commits(
    origin: Checkout, here: Checkout
) -> None:
    base, head = commit_of(origin, "main"), commit_of(here, "HEAD")
    assert sides(here, protocol.Range(base=base, head=head), step="tune") is not None
    assert sides(here, protocol.MergeCommit(base_tip=base, head_tip=head), step="gate") is not None
    for choice in (
        protocol.Usual(),
        protocol.MergeBase(target="main"),
        protocol.Push(before=base, after=head),
    ):
        assert sides(here, choice, step="gate") is None


def test_a_checkout_may_have_its_target_merged_into_the_pull_request(
    origin: Checkout, here: Checkout
) -> None:
    """Bitbucket does that. The base is then what was merged, and no commit of others is judged."""
    tip, main = commit_of(here, "HEAD"), commit_of(origin, "main")
    merged = here.merge("origin/main")
    request = protocol.JobRequest(words=("run",), step="run", out=Path(), repository=here.path)
    event = protocol.JobEvent(revisions=protocol.MergeBase(target="main"), tip=tip)
    revisions = present(job_revisions(request, event))
    assert (revisions.base, revisions.head) == (main, merged)
    with pytest.raises(RevisionError, match="neither the pull request's head"):
        job_revisions(
            request, protocol.JobEvent(revisions=protocol.MergeBase(target="main"), tip="f" * 40)
        )


def test_a_merge_into_a_pull_request_is_not_the_merge_commit_of_one(here: Checkout) -> None:
    """Its first parent would be the pull request itself, which would then be compared with
    nothing but what was merged into it."""
    tip = commit_of(here, "HEAD")
    here.merge("origin/main")
    request = protocol.JobRequest(words=("run",), step="run", out=Path(), repository=here.path)
    choice = protocol.MergeCommit(base_tip=commit_of(here, "origin/main"), head_tip=tip)
    with pytest.raises(RevisionError, match="is not of the base"):
        job_revisions(request, protocol.JobEvent(revisions=choice, tip=tip))


def test_a_comment_is_about_the_head_or_its_merge_commit(origin: Checkout) -> None:
    head = commit_of(origin, "topic")
    merge = origin.merge("topic")
    origin.git("checkout", "-q", "topic")
    updated = origin.merge("main~1")
    for commit in (head, merge, updated):
        assert is_of_pull_request(origin.path, commit, head)
    author = f"A\u2028parent {head} B <a@b>"  # a line of the commit, as Python splits one
    origin.git("commit", "-q", "--allow-empty", "--author", author, "-m", "no merge")
    for commit, tip in (("main~1", head), ("HEAD", head), (head, "")):
        assert not is_of_pull_request(origin.path, commit_of(origin, commit), tip)


def test_people_look_at_the_head_of_a_pull_request_and_at_no_other_commit(
    origin: Checkout, here: Checkout
) -> None:
    tip, main = commit_of(origin, "topic"), commit_of(origin, "main")
    of_request = protocol.JobEvent(revisions=protocol.Usual(), pull_request=7, tip=tip)
    of_push = protocol.JobEvent(revisions=protocol.Usual(), checked_out=main)
    request = protocol.JobRequest(words=("run",), step="run", out=Path("out"), repository=here.path)
    at_tip, at_main = Revisions(base=None, head=tip), Revisions(base=None, head=main)
    assert reported_commit(request, of_request, at_tip) == tip
    assert reported_commit(request, of_request, None) == tip
    assert reported_commit(request, of_request, at_main) == ""
    assert reported_commit(request, of_push, at_main) == main
    assert reported_commit(request, of_push, None) == main
    assert reported_commit(request, of_push, at_tip) == ""
    named = msgspec.structs.replace(request, asked=protocol.AskedRevisions(base=main, head=main))
    assert reported_commit(named, of_request, None) == ""
