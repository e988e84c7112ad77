from __future__ import annotations

from pathlib import Path

import pytest

from tests.plugin.ci_hosts.recorded_environment import recorded_environment
from tests.support.git_repository import Checkout, new_repository
from tunegate.edges.git.repository import GitRepository
from tunegate.edges.run_facts import run_facts

JOB = recorded_environment("buildkite-pull-request")


@pytest.fixture
def checkout(tmp_path: Path) -> Checkout:
    return new_repository(tmp_path / "vision")


def test_a_job_says_its_change_its_page_and_its_repository(checkout: Checkout) -> None:
    checkout.git("remote", "add", "origin", "https://u:secret@git.example/acme/vision.git")
    commit = checkout.commit({"a": b"1"})
    checkout.git("tag", "v1")
    facts = run_facts(GitRepository(checkout.path), commit, at=9, variables=JOB)
    assert (facts.at, facts.release, facts.repository) == (9, "v1", "acme/vision")
    assert facts.change == int(JOB["BUILDKITE_PULL_REQUEST"])
    assert facts.run_url.startswith("https://")
    assert facts.authored == int(checkout.git("show", "-s", "--format=%at", commit))


def test_outside_of_a_ci_the_directory_has_the_name(checkout: Checkout) -> None:
    commit = checkout.commit({"a": b"1"})
    facts = run_facts(GitRepository(checkout.path), commit, at=9, variables={})
    assert (facts.repository, facts.change, facts.run_url) == ("vision", None, "")


def test_content_that_is_no_commit_was_written_at_no_time(checkout: Checkout) -> None:
    checkout.commit({"a": b"1"})
    facts = run_facts(GitRepository(checkout.path), "not a commit", at=9, variables={})
    assert facts.authored is None


@pytest.mark.parametrize("page", ["javascript:alert(1)", "https://u:p@ci/1", "https://ci/\"'><b>"])
def test_a_page_that_nobody_should_follow_is_left_out(checkout: Checkout, page: str) -> None:
    commit = checkout.commit({"a": b"1"})
    variables = {**JOB, "BUILDKITE_BUILD_URL": page}
    facts = run_facts(GitRepository(checkout.path), commit, at=9, variables=variables)
    assert facts.run_url == ""
