from __future__ import annotations

from pathlib import Path

import pytest

from tests.ci.gitlab.test_event import REQUEST
from tests.support.git_repository import Checkout, new_repository
from tunegate.cli.handlers.run_history import run_facts
from tunegate.system.git.repository import GitRepository

JOB = {**REQUEST, "GITLAB_CI": "true", "CI_JOB_URL": "https://gitlab.example/acme/vision/-/jobs/5"}


@pytest.fixture
def checkout(tmp_path: Path) -> Checkout:
    return new_repository(tmp_path / "vision")


def test_a_job_says_its_change_its_page_and_its_repository(checkout: Checkout) -> None:
    checkout.git("remote", "add", "origin", "https://u:secret@git.example/acme/vision.git")
    commit = checkout.commit({"a": b"1"})
    checkout.git("tag", "v1")
    facts = run_facts(GitRepository(checkout.path), commit, at=9, variables=JOB)
    assert (facts.at, facts.release, facts.repository) == (9, "v1", "acme/vision")
    assert facts.change == int(JOB["CI_MERGE_REQUEST_IID"])
    assert facts.is_aside
    assert facts.run_url.startswith("https://")
    assert facts.authored == int(checkout.git("show", "-s", "--format=%at", commit))


def test_outside_of_a_ci_the_directory_has_the_name(checkout: Checkout) -> None:
    commit = checkout.commit({"a": b"1"})
    facts = run_facts(GitRepository(checkout.path), commit, at=9, variables={})
    assert (facts.repository, facts.change, facts.run_url) == ("vision", None, "")


def test_a_head_of_a_local_branch_is_beside_the_default_one(checkout: Checkout) -> None:
    """No number of a pull request says so where somebody tries things at a desk."""
    on_main = checkout.commit({"a": b"1"})
    checkout.git("checkout", "-q", "-b", "topic")
    topic = checkout.commit({"a": b"2"})
    repository = GitRepository(checkout.path)
    aside = [run_facts(repository, each, at=9, variables={}).is_aside for each in (on_main, topic)]
    assert aside == [False, True]


def test_a_commit_that_was_not_pushed_yet_is_on_the_default_branch(checkout: Checkout) -> None:
    pushed = checkout.commit({"a": b"1"})
    checkout.git("update-ref", "refs/remotes/origin/main", pushed)
    ahead = checkout.commit({"a": b"2"})
    assert not run_facts(GitRepository(checkout.path), ahead, at=9, variables={}).is_aside


def test_content_that_is_no_commit_was_written_at_no_time(checkout: Checkout) -> None:
    checkout.commit({"a": b"1"})
    facts = run_facts(GitRepository(checkout.path), "not a commit", at=9, variables={})
    assert facts.authored is None
    assert not facts.is_aside


@pytest.mark.parametrize("page", ["javascript:alert(1)", "https://u:p@ci/1", "https://ci/\"'><b>"])
def test_a_page_that_nobody_should_follow_is_left_out(checkout: Checkout, page: str) -> None:
    commit = checkout.commit({"a": b"1"})
    variables = {**JOB, "CI_JOB_URL": page}
    facts = run_facts(GitRepository(checkout.path), commit, at=9, variables=variables)
    assert facts.run_url == ""
