from pathlib import Path

import pytest

from tests.support.git_repository import Checkout, commit_of, new_repository, two_branches
from tunegate.errors import EnvironmentUnfitError, NoBaselineError, RevisionError
from tunegate.system.git import fetch
from tunegate.system.git.events import GitEvents
from tunegate.system.git.process import GitProcess
from tunegate.system.git.repository import GitRepository


@pytest.fixture
def tagged(tmp_path: Path) -> Checkout:
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
def origin(tmp_path: Path) -> Checkout:
    return two_branches(tmp_path / "origin")


@pytest.fixture
def shallow(tagged: Checkout) -> GitProcess:
    """A clone of the last commit of `main` alone."""
    return GitProcess(tagged.clone("--depth=1", "--no-tags", "--single-branch").path)


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
    assert fetch.is_commit_id(text) == is_id


def test_a_commit_that_a_shallow_clone_lacks_is_fetched_and_it_stays_shallow(
    tagged: Checkout, shallow: GitProcess
) -> None:
    first = commit_of(tagged, "v1")
    assert not fetch.is_here(shallow, first)
    assert fetch.ensure_here(shallow, first)
    assert fetch.is_here(shallow, first)
    assert fetch.is_shallow(shallow)


def test_all_blobs_that_a_blobless_clone_lacks_come_by_one_request(origin: Checkout) -> None:
    commit = origin.commit({f"{number}.onnx": b"%d" % number for number in range(9)})
    origin.commit({f"{number}.onnx": b"later" for number in range(9)})
    clone = origin.clone("--filter=blob:none")
    repository = GitRepository(clone.path)
    blobs = [entry.blob for entry in repository.files(commit)]
    packs = clone.path / ".git/objects/pack"
    before = len([*packs.glob("*.pack")])
    assert repository.sizes(blobs).keys() == set(blobs)
    assert len([*packs.glob("*.pack")]) == before + 1


def test_a_commit_that_nobody_has_and_a_name_are_not_here(shallow: GitProcess) -> None:
    assert not fetch.ensure_here(shallow, "1" * 40)
    assert not fetch.ensure_here(shallow, "main")


def test_history_is_deepened_also_for_a_commit_that_was_never_pushed(
    tagged: Checkout, shallow: GitProcess
) -> None:
    assert shallow.text("rev-list", "--count", "HEAD") == "1"
    fetch.deepen(shallow, 1, commit_of(tagged, "main"))
    assert shallow.text("rev-list", "--count", "HEAD") == "2"
    fetch.deepen(shallow, 1, "1" * 40)
    assert shallow.text("rev-list", "--count", "HEAD") == "3"


def test_tags_come_with_the_history_to_them(tagged: Checkout, shallow: GitProcess) -> None:
    fetch.fetch_tags(shallow, "v*")
    assert shallow.text("rev-parse", "v1") == commit_of(tagged, "v1")
    assert not fetch.is_shallow(shallow)


# The commit at which histories parted, in real repositories and in shallow clones.


def base_of(checkout: Checkout, tip: str = "origin/main", head: str = "HEAD") -> tuple[str, str]:
    found = fetch.merge_base(GitProcess(checkout.path), tip, head)
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
    here = origin.clone("--depth=4", "--no-single-branch", "--branch=topic")
    assert here.git("merge-base", "origin/main", "HEAD") == old
    assert base_of(here) == (newer, "")


def test_what_a_shallow_clone_cannot_know_is_said(tmp_path: Path) -> None:
    origin = two_branches(tmp_path / "origin")
    origin.git("checkout", "-q", "--orphan", "side")
    for number in range(3):
        origin.commit({"side": b"%d" % number})
    origin.git("checkout", "-q", "topic")
    origin.git("merge", "-q", "-s", "ours", "--allow-unrelated-histories", "-m", "one", "side")
    here = origin.clone("--depth=3", "--no-single-branch", "--branch=topic")
    origin.take_away()
    assert base_of(here)[1] == ", as far as this shallow clone knows"


def test_of_branches_that_were_merged_into_each_other_it_is_the_first_commit_with_all_they_share(
    origin: Checkout,
) -> None:
    on_main = commit_of(origin, "main")
    merged = origin.merge("topic")
    origin.commit({"d": b"main goes on"})
    origin.git("checkout", "-q", "topic")
    also = origin.merge(on_main)
    origin.commit({"c": b"c"})
    told = " (2 of them: the first commit there that has all)"
    assert base_of(origin, "main", "topic") == (merged, told)
    assert base_of(origin, "topic", "main") == (also, told)


def test_a_head_cannot_choose_the_one_of_two_merge_bases_that_it_looks_unchanged_beside(
    tmp_path: Path,
) -> None:
    """A side branch made a model faster and was merged; the head merges that branch, too, and keeps
    the slow model. Git merges this head without a conflict, and the slow model wins."""
    origin = new_repository(tmp_path / "origin")
    start = origin.commit({"m.onnx": b"slow"})
    on_main = origin.commit({"readme": b"words"})
    origin.git("checkout", "-q", "-b", "side", start)
    origin.commit({"m.onnx": b"fast"})
    origin.git("checkout", "-q", "main")
    origin.merge("side")
    origin.git("checkout", "-q", "-b", "topic", on_main)
    origin.git("merge", "-q", "-s", "ours", "-m", "takes it back", "side")
    base, _ = base_of(origin, "main", "topic")
    assert origin.git("show", f"{base}:m.onnx") == "fast"


def test_an_ancestor_is_looked_for_in_all_that_can_be_fetched(origin: Checkout) -> None:
    start, other = (commit_of(origin, "main~1"), commit_of(origin, "topic"))
    many(origin, 60)
    git = GitProcess(origin.clone("--depth=1").path)
    head = commit_of(origin, "main")
    assert fetch.is_ancestor(git, head, head)
    assert fetch.is_ancestor(git, start, head)
    assert not fetch.is_ancestor(git, other, head)


# Base and head of every event, in real repositories and real shallow clones of them.


# pull requests -------------------------------------------------------------------


def test_a_merge_of_depth_one_fetches_its_first_parent_without_blobs(origin: Checkout) -> None:
    tip, head = commit_of(origin, "main"), commit_of(origin, "topic")
    merge = origin.merge("topic")
    here = origin.job(merge)
    found = GitEvents(here.path).merge_commit_revisions(tip, head)
    assert (found.base, found.head) == (tip, merge)
    assert found.reason == "first parent of the merge commit"
    assert not here.has_object(commit_of(origin, f"{tip}:a.onnx"))


def test_only_the_blobs_that_are_read_are_fetched(origin: Checkout) -> None:
    origin.commit({"c.onnx": b"c" * 2000}, "to be removed by the topic")
    origin.git("checkout", "-q", "topic")
    origin.git("merge", "-q", "--no-ff", "-m", "again", "main")
    origin.commit({"c.onnx": None})
    origin.git("checkout", "-q", "main")
    tip = commit_of(origin, "main")
    here = origin.job(origin.merge("topic"))
    repository = GitRepository(here.path)
    found = repository.merge_commit_revisions(tip, commit_of(origin, "topic"))
    repository.files(found.base or "")
    assert repository.read(tip, "a.onnx") == b"a" * 2000
    assert here.has_object(commit_of(origin, f"{tip}:a.onnx"))
    assert not here.has_object(commit_of(origin, f"{tip}:c.onnx"))


def test_a_merge_commit_whose_parent_is_out_of_reach_is_not_judged(origin: Checkout) -> None:
    tips = commit_of(origin, "main"), commit_of(origin, "topic")
    here = origin.job(origin.merge("topic"))
    origin.take_away()
    with pytest.raises(EnvironmentUnfitError, match="could not be fetched"):
        GitEvents(here.path).merge_commit_revisions(*tips)


def test_the_base_of_an_event_may_be_older_than_the_first_parent(origin: Checkout) -> None:
    named, head = commit_of(origin, "main"), commit_of(origin, "topic")
    for number in range(60):
        origin.commit({"readme": str(number).encode()})
    tip = commit_of(origin, "main")
    here = origin.job(origin.merge("topic"))
    assert GitEvents(here.path).merge_commit_revisions(named, head, "main").base == tip


def test_a_merge_commit_into_the_target_before_is_not_judged(origin: Checkout) -> None:
    """The new target is an earlier commit of the former one."""
    origin.git("branch", "release", "main")
    named, head = commit_of(origin, "main"), commit_of(origin, "topic")
    origin.commit({"readme": b"later"})
    here, unaware = origin.job(origin.merge("topic")), origin.clone("--single-branch")
    whole = origin.clone()
    with pytest.raises(RevisionError, match=r"is not of the base .* Push again"):
        GitEvents(here.path).merge_commit_revisions(named, head, "release")
    origin.take_away()
    for each in (here, whole):  # with the branch, as it was
        with pytest.raises(RevisionError, match=r"is not of the base .* Push again"):
            GitEvents(each.path).merge_commit_revisions(named, head, "release")
    with pytest.raises(EnvironmentUnfitError, match="the branch release could not be fetched"):
        GitEvents(unaware.path).merge_commit_revisions(named, head, "release")


def test_an_older_base_that_cannot_be_fetched_is_told_so(origin: Checkout) -> None:
    named, head = commit_of(origin, "main"), commit_of(origin, "topic")
    origin.commit({"readme": b"later"})
    here = origin.job(origin.merge("topic"))
    here.git("fetch", "-q", "--depth=2", "origin", "HEAD")
    origin.take_away()
    with pytest.raises(EnvironmentUnfitError, match=f"{named[:12]} could not be fetched"):
        GitEvents(here.path).merge_commit_revisions(named, head, "main")


def test_a_merge_commit_with_another_base_than_the_events_is_not_judged(origin: Checkout) -> None:
    head, tip = commit_of(origin, "topic"), commit_of(origin, "main")
    merge = origin.merge("topic")
    later = origin.commit({"readme": b"later"})
    here = origin.job(merge)
    with pytest.raises(RevisionError, match="is not of the base"):
        GitEvents(here.path).merge_commit_revisions(later, head)
    with pytest.raises(RevisionError, match="is not of the base"):  # gone by a forced push
        GitEvents(here.path).merge_commit_revisions("f" * 40, head, "main")
    assert GitEvents(here.path).merge_commit_revisions(tip, head).base == tip


def test_a_checkout_of_something_else_is_not_the_pull_request(origin: Checkout) -> None:
    tip, head = commit_of(origin, "main"), commit_of(origin, "topic")
    with pytest.raises(RevisionError, match="neither the pull request's head"):
        GitEvents(origin.path).merge_commit_revisions(tip, head)
    with pytest.raises(RevisionError, match="the event is about"):
        GitEvents(origin.path).require_checked_out(head)
    GitEvents(origin.path).require_checked_out(tip)


# pushes and the merge queue ------------------------------------------------------


@pytest.mark.parametrize("zeros", ["0" * 40, "0" * 64])
def test_a_new_branch_is_compared_with_its_merge_base(origin: Checkout, zeros: str) -> None:
    after = commit_of(origin, "topic")
    found = GitEvents(origin.job(after).path).push_revisions(zeros, after)
    assert found.base == commit_of(origin, "main~1")
    assert found.reason == "new branch: merge base with origin/main"


def test_a_forced_push_without_its_commit_is_compared_with_the_merge_base(origin: Checkout) -> None:
    found = GitEvents(origin.path).push_revisions("f" * 40, commit_of(origin, "topic"))
    assert found.base == commit_of(origin, "main~1")
    assert found.reason == "ffffffffffff is gone (forced push): merge base with main"


def test_a_forced_push_to_the_default_branch_has_nothing_to_compare_with(origin: Checkout) -> None:
    with pytest.raises(NoBaselineError, match=r"^ffffffffffff is gone \(forced push\)"):
        GitEvents(origin.path).push_revisions("f" * 40, commit_of(origin, "main"))


def test_a_commit_of_an_event_is_never_an_option_of_git(origin: Checkout) -> None:
    with pytest.raises(RevisionError, match="--base"):
        GitEvents(origin.path).range_revisions("--upload-pack=touch pwned", "main")
    assert not (origin.path / "pwned").exists()


def test_fetching_into_a_full_clone_does_not_make_it_shallow(origin: Checkout) -> None:
    here = origin.clone()
    late = origin.commit({"late": b"late"})
    assert GitEvents(here.path).push_revisions(late, commit_of(here, "HEAD")).base == late
    assert here.git("rev-parse", "--is-shallow-repository") == "false"


def test_a_job_in_a_kept_clone_takes_no_branch_that_the_remote_lacks(origin: Checkout) -> None:
    job = origin.clone()
    job.git("checkout", "-q", "--detach", "origin/topic")
    job.git("branch", "-q", "-D", "main")
    repository = GitRepository(job.path)
    assert repository.revisions("main", None).base == commit_of(origin, "main~1")
    origin.git("branch", "-m", "main", "trunk")
    with pytest.raises(RevisionError, match='the remote has no branch "main" any more'):
        repository.revisions("main", None)
    origin.take_away()
    assert repository.revisions("main", None).base == job.git("rev-parse", "origin/main~1")
