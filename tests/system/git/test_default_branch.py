from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.git_repository import Checkout, actions_checkout, clone
from tests.support.two_branches import commit_of, two_branches
from tunegate.errors import EnvironmentUnfitError, RevisionError
from tunegate.system.git.compared_revisions import name_of_remote
from tunegate.system.git.named_revision import default_branch, known_default_branch, short
from tunegate.system.git.process import GitProcess


@pytest.fixture
def origin(tmp_path: Path) -> Checkout:
    return two_branches(tmp_path / "origin")


def named(checkout: Checkout) -> str:
    return default_branch(GitProcess(checkout.path))


def test_a_clone_has_been_told(origin: Checkout, tmp_path: Path) -> None:
    origin.git("branch", "-m", "main", "trunk")
    assert named(clone(origin, tmp_path / "clone")) == "refs/remotes/origin/trunk"


def test_a_clone_that_was_not_told_asks_the_remote_and_no_branch_is_guessed(
    origin: Checkout, tmp_path: Path
) -> None:
    origin.git("checkout", "-q", "-b", "develop")
    here = clone(origin, tmp_path / "clone")
    here.git("remote", "set-head", "origin", "-d")
    assert named(here) == "refs/remotes/origin/develop"
    job = actions_checkout(origin, tmp_path / "job", commit_of(origin, "topic"))
    assert named(job) == "refs/remotes/origin/develop"


def test_a_default_branch_that_was_renamed_is_not_the_one_that_was_told(
    origin: Checkout, tmp_path: Path
) -> None:
    here = clone(origin, tmp_path / "clone")
    origin.git("branch", "-m", "main", "trunk")
    here.git("fetch", "-q", "--prune", "origin")
    assert named(here) == "refs/remotes/origin/trunk"


def test_an_old_clone_does_not_believe_a_branch_that_the_remote_no_longer_has(
    origin: Checkout, tmp_path: Path
) -> None:
    origin.git("branch", "-m", "main", "master")
    here = clone(origin, tmp_path / "clone")
    assert named(here) == "refs/remotes/origin/master"
    origin.git("branch", "-m", "master", "main")
    here.git("fetch", "-q", "origin")
    assert here.git("symbolic-ref", "refs/remotes/origin/HEAD") == "refs/remotes/origin/master"
    assert named(here) == "refs/remotes/origin/main"


def test_a_remote_that_chose_another_default_branch_is_believed_whatever_it_keeps(
    origin: Checkout, tmp_path: Path
) -> None:
    here = clone(origin, tmp_path / "clone")
    origin.git("checkout", "-q", "-b", "trunk")
    assert named(here) == "refs/remotes/origin/trunk"


def test_a_branch_that_was_told_is_not_believed_where_the_remote_has_neither_it_nor_a_default(
    origin: Checkout, tmp_path: Path
) -> None:
    here = clone(origin, tmp_path / "clone")
    origin.git("branch", "-m", "main", "master")
    origin.git("symbolic-ref", "HEAD", "refs/heads/nowhere")
    here.git("fetch", "-q", "--prune", "origin")
    assert named(here) == "refs/remotes/origin/master"


def test_a_remote_without_a_default_that_has_the_branch_confirms_it(
    origin: Checkout, tmp_path: Path
) -> None:
    origin.git("branch", "-m", "main", "trunk")
    here = clone(origin, tmp_path / "clone")
    origin.git("symbolic-ref", "HEAD", "refs/heads/nowhere")
    assert named(here) == "refs/remotes/origin/trunk"


def test_two_usual_names_are_refused_where_the_remote_does_not_say_which(
    origin: Checkout, tmp_path: Path
) -> None:
    origin.git("branch", "-m", "main", "master")
    here = clone(origin, tmp_path / "clone")
    origin.git("branch", "-m", "master", "main")
    here.git("fetch", "-q", "origin")
    origin.path.rename(tmp_path / "moved")
    with pytest.raises(EnvironmentUnfitError, match="origin/master or origin/main may be"):
        named(here)


def test_a_laptop_without_a_network_believes_what_it_was_told(
    origin: Checkout, tmp_path: Path
) -> None:
    here = clone(origin, tmp_path / "clone")
    origin.path.rename(tmp_path / "moved")
    assert named(here) == "refs/remotes/origin/main"


@pytest.mark.parametrize("name", ["main", "master"])
def test_a_remote_that_says_none_has_one_by_its_usual_name(
    origin: Checkout, tmp_path: Path, name: str
) -> None:
    origin.git("branch", "-m", "main", name)
    here = actions_checkout(origin, tmp_path / "job", commit_of(origin, "topic"))
    origin.git("symbolic-ref", "HEAD", "refs/heads/nowhere")
    assert named(here) == f"refs/remotes/origin/{name}"
    assert named(here) == f"refs/remotes/origin/{name}"


def test_without_a_remote_the_name_is_a_usual_one_or_that_of_new_repositories(
    origin: Checkout,
) -> None:
    assert named(origin) == "refs/heads/main"
    origin.git("branch", "-m", "main", "master")
    assert named(origin) == "refs/heads/master"
    origin.git("branch", "-m", "master", "trunk")
    origin.git("config", "init.defaultBranch", "trunk")
    assert named(origin) == "refs/heads/trunk"


def test_the_only_branch_is_the_default_one_and_of_two_neither(origin: Checkout) -> None:
    origin.git("branch", "-m", "main", "trunk")
    with pytest.raises(RevisionError, match="no branch is the default one: there is no remote"):
        named(origin)
    assert known_default_branch(GitProcess(origin.path)) is None
    origin.git("branch", "-q", "-D", "topic")
    assert named(origin) == "refs/heads/trunk"


def test_a_remote_that_cannot_be_asked_is_not_taken_for_none(
    origin: Checkout, tmp_path: Path
) -> None:
    here = actions_checkout(origin, tmp_path / "job", commit_of(origin, "topic"))
    origin.path.rename(tmp_path / "moved")
    with pytest.raises(EnvironmentUnfitError, match="the default branch could not be fetched"):
        named(here)


def test_people_know_a_branch_by_its_short_name() -> None:
    assert short("refs/remotes/origin/main") == "origin/main"
    assert short("refs/heads/a/b") == "a/b"


@pytest.mark.parametrize(
    ("address", "name"),
    [
        ("https://github.com/acme/vision.git", "acme/vision"),
        ("https://x-access-token:ghs_secret@github.com/acme/vision", "acme/vision"),
        ("git@github.com:acme/vision.git", "acme/vision"),
        ("ssh://git@gitlab.example:2222/group/sub/project.git/", "group/sub/project"),
        ("/srv/git/vision.git", ""),
        ("../vision", ""),
        ("file:///srv/git/vision.git", ""),
        ("https://example.com/", ""),
        ("https://example.com/a b<script>", ""),
        ("", ""),
    ],
)
def test_a_repository_has_the_name_of_its_path_on_the_server(address: str, name: str) -> None:
    assert name_of_remote(address) == name


@given(st.text(alphabet="abs3", min_size=12))
def test_no_secret_of_an_address_becomes_a_name(secret: str) -> None:
    assert secret not in name_of_remote(f"https://{secret}@example.com/o/n.git")
