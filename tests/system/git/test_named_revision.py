from pathlib import Path

import pytest

from tests.support.git_repository import (
    Checkout,
    actions_checkout,
    clone,
    commit_of,
    new_repository,
    two_branches,
)
from tunegate.errors import RevisionError
from tunegate.system.git.named_revision import fetch_if_branch, named_branches, named_commit
from tunegate.system.git.process import GitProcess
from tunegate.system.git.repository import GitRepository


@pytest.fixture
def origin(tmp_path: Path) -> Checkout:
    return two_branches(tmp_path / "origin")


@pytest.fixture
def here(origin: Checkout, tmp_path: Path) -> Checkout:
    return clone(origin, tmp_path / "clone")


@pytest.mark.parametrize(
    ("name", "branches"),
    [
        ("main", ("refs/heads/main", "refs/remotes/origin/main")),
        ("topic", ("refs/remotes/origin/topic",)),
        ("origin/topic", ("refs/remotes/origin/topic",)),
        ("refs/heads/main", ("refs/heads/main",)),
        ("origin", ("refs/remotes/origin/main",)),
        ("@{u}", ("refs/remotes/origin/main",)),
        ("HEAD", ()),
        ("main~1", ()),
        ("v1", ()),
        ("-all", ()),
        ("", ()),
    ],
)
def test_a_branch_is_told_from_a_commit(
    here: Checkout, name: str, branches: tuple[str, ...]
) -> None:
    here.git("tag", "v1", "HEAD~1")
    assert named_branches(GitProcess(here.path), name) == branches
    assert named_branches(GitProcess(here.path), commit_of(here, "HEAD")) == ()


@pytest.mark.parametrize("name", ["refs/tags/topic", "topic"])
def test_a_tag_that_the_remote_has_as_well_is_told_from_the_branch(
    origin: Checkout, tmp_path: Path, name: str
) -> None:
    origin.git("tag", "topic", "main~1")
    job = actions_checkout(origin, tmp_path / "job", commit_of(origin, "main"))
    if name.startswith("refs/"):
        found = named_commit(GitProcess(job.path), name, "--base")
        assert found == commit_of(origin, "main~1")
        return
    with pytest.raises(RevisionError, match='"topic" is a branch and a tag, of different commits'):
        named_commit(GitProcess(job.path), name, "--base")


@pytest.mark.parametrize("is_fetched", [True, False])
def test_a_local_branch_called_like_one_of_the_remote_does_not_choose_the_base(
    origin: Checkout, tmp_path: Path, is_fetched: bool
) -> None:
    job = actions_checkout(origin, tmp_path / "job", commit_of(origin, "topic"))
    if is_fetched:
        job.git("fetch", "-q", "origin", "main:refs/remotes/origin/main")
    job.git("checkout", "-q", "-b", "origin/main")
    with pytest.raises(RevisionError, match="local branch and one of a remote, of different com"):
        named_commit(GitProcess(job.path), "origin/main", "--base")
    for name in ("main", "refs/remotes/origin/main"):
        assert named_commit(GitProcess(job.path), name, "--base") == commit_of(origin, "main")


def test_a_branch_that_a_used_checkout_has_is_made_that_of_today(
    origin: Checkout, here: Checkout
) -> None:
    later = origin.commit({"readme": b"later"})
    for name in ("v1", later, "--all"):
        fetch_if_branch(GitProcess(here.path), name)
    assert commit_of(here, "origin/main") != later
    fetch_if_branch(GitProcess(here.path), "main")
    assert commit_of(here, "origin/main") == later


@pytest.mark.parametrize("way", ["~1", "^", "^1"])
def test_the_history_that_a_way_to_a_commit_needs_is_fetched(
    origin: Checkout, tmp_path: Path, way: str
) -> None:
    job = actions_checkout(origin, tmp_path / "job", commit_of(origin, "main"))
    found = named_commit(GitProcess(job.path), f"HEAD{way}", "--base")
    assert found == commit_of(origin, "main~1")


def test_a_way_that_leads_nowhere_is_no_revision(origin: Checkout, tmp_path: Path) -> None:
    job = actions_checkout(origin, tmp_path / "job", commit_of(origin, "main"))
    for name in ("HEAD~99", "HEAD^7", "nothing~1", "~1"):
        with pytest.raises(RevisionError, match="is not a revision"):
            named_commit(GitProcess(job.path), name, "--base")


@pytest.mark.parametrize("kind", ["refs/tags/", "refs/heads/", "refs/remotes/origin/"])
@pytest.mark.parametrize("way", ["", "~1", "^", "^{commit}"])
def test_a_reference_that_is_called_like_a_short_id_is_ambiguous(
    here: Checkout, kind: str, way: str
) -> None:
    short = commit_of(here, "main")[:8]
    here.git("update-ref", f"{kind}{short}", commit_of(here, "origin/topic"))
    with pytest.raises(RevisionError) as raised:
        named_commit(GitProcess(here.path), f"{short}{way}", "--base")
    assert str(raised.value) == (
        f'--base: "{short}" may be a commit\'s short id, and is the name of {kind}{short}. '
        f"Name the commit's whole id, or {kind}{short}."
    )


def test_a_tag_of_the_remote_does_not_stand_for_a_commit_that_a_shallow_clone_lacks(
    origin: Checkout, tmp_path: Path
) -> None:
    short = commit_of(origin, "main~1")[:8]
    origin.git("tag", short, "topic")
    job = actions_checkout(origin, tmp_path / "job", commit_of(origin, "main"))
    with pytest.raises(RevisionError, match=f"is the name of refs/tags/{short}"):
        named_commit(GitProcess(job.path), short, "--base")


def test_a_whole_id_is_that_commit_whatever_is_called_so(here: Checkout) -> None:
    whole = commit_of(here, "main")
    here.git("update-ref", f"refs/tags/{whole}", commit_of(here, "origin/topic"))
    assert named_commit(GitProcess(here.path), whole, "--base") == whole


def test_a_name_of_the_length_of_another_kind_of_id_is_no_revision(here: Checkout) -> None:
    here.git("update-ref", f"refs/tags/{'a1' * 32}", commit_of(here, "origin/topic"))
    with pytest.raises(RevisionError, match="is not a revision"):
        named_commit(GitProcess(here.path), "a1" * 32, "--base")


def test_a_year_is_a_name_and_a_short_id_without_a_reference_is_a_commit(here: Checkout) -> None:
    here.git("tag", "2024", "origin/topic")
    git = GitProcess(here.path)
    assert named_commit(git, "2024", "--base") == commit_of(here, "origin/topic")
    assert named_commit(git, commit_of(here, "main")[:9], "--base") == commit_of(here, "main")


KEY = "Tunegate-Waiver"


def test_trailers_of_a_branch_are_read_newest_first_and_those_of_the_base_are_not(
    tmp_path: Path,
) -> None:
    checkout = new_repository(tmp_path / "r")
    base = checkout.commit({"a": b"1"}, f"one\n\n{KEY}: {{of: main}}")
    first = checkout.commit(
        {"a": b"2"}, f"two\n\nWords.\n\nSigned-off-by: A\n{KEY}: {{of: two,\n  folded: yes}}"
    )
    second = checkout.commit({"a": b"3"}, f"three\n\n{KEY}: x\n{KEY}: y\nTunegate-Other: z")
    head = checkout.commit({"a": b"4"}, f"four {KEY}: no trailer\n\nNor is {KEY}: this one here.")
    found = GitRepository(checkout.path).trailers(base, head, KEY)
    assert [(each.commit, each.value) for each in found] == [
        (second, "x"),
        (second, "y"),
        (first, "{of: two, folded: yes}"),
    ]


def test_a_shallow_clone_takes_no_older_trailer_for_one_of_the_branch(tmp_path: Path) -> None:
    origin = new_repository(tmp_path / "r")
    origin.commit({"a": b"1"}, f"old\n\n{KEY}: old")
    base = origin.commit({"a": b"2"}, "base")
    origin.git("branch", "topic", f"{base}~1")
    origin.git("checkout", "-q", "topic")
    origin.commit({"b": b"3"}, f"new\n\n{KEY}: new")
    origin.git("checkout", "-q", "main")
    head = origin.merge("topic")
    for fetches, values in ((False, []), (True, ["new"])):
        here = clone(origin, tmp_path / f"fetches-{fetches}", "--depth=1")
        here.git("fetch", "-q", "--depth=1", "origin", base)
        found = GitRepository(here.path).trailers(base, head, KEY, may_fetch=fetches)
        assert [each.value for each in found] == values
