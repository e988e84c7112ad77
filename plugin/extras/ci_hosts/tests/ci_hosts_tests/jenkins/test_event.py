from __future__ import annotations

import pytest

from ci_hosts_tests.recorded_environment import BEFORE, HEAD, recorded_environment
from tunegate.ci.protocol import AskedRevisions, JobEvent, MergeBase, Push, Usual
from tunegate.errors import ConfigError
from tunegate_ci_hosts.jenkins.event import jenkins_event


def event(dump: str, asked: AskedRevisions | None = None, /, **more: str) -> JobEvent:
    environment = {**recorded_environment(f"jenkins-{dump}"), **more}
    return jenkins_event(environment, asked or AskedRevisions())


def test_a_change_is_compared_with_its_target_branch() -> None:
    found = event("pull-request", CHANGE_TARGET="release/2")
    assert found.revisions == MergeBase(target="release/2")
    assert (found.pull_request, found.zone) == (123, "pr/acme/models/123")


def test_a_change_without_a_number_or_of_a_fork_writes_nothing() -> None:
    assert event("pull-request", CHANGE_ID="I8473b95934b5732ac55d26311a706c9c2bde9940").zone is None
    assert event("fork").zone is None
    assert event("fork").pull_request == 123


def test_a_change_that_names_no_target_is_refused() -> None:
    with pytest.raises(ConfigError, match="CHANGE_TARGET is not set"):
        event("pull-request", CHANGE_TARGET="")


def test_the_primary_branch_is_compared_with_the_last_build_that_passed() -> None:
    found = event("branch")
    assert found.revisions == Push(before=BEFORE, after=HEAD, default_branch="main")
    assert (found.checked_out, found.zone) == (HEAD, "main")


@pytest.mark.parametrize("before", ["", HEAD, "main"])
def test_a_primary_branch_without_an_earlier_build_is_compared_with_its_parent(before: str) -> None:
    found = event("branch", GIT_PREVIOUS_SUCCESSFUL_COMMIT=before)
    assert (found.revisions, found.zone) == (Usual(default_branch="main", is_on_it=True), "main")


def test_another_branch_is_compared_with_where_it_left_the_default_one() -> None:
    found = event("branch", BRANCH_IS_PRIMARY="", BRANCH_NAME="feat/é")
    assert (found.revisions, found.zone) == (
        Usual(),
        "pr/acme/models/branch_feat__-18e71ee16fb778a243139e8c9404f4a245982c0ab47f6fdd8bd573bb8be400b4",
    )


def test_a_configuration_can_say_which_branch_is_the_default_one() -> None:
    """Some sources report several primary branches, others none."""
    assert event("branch", BRANCH_IS_PRIMARY="", TUNEGATE_DEFAULT_BRANCH="main").zone == "main"
    assert event("branch", TUNEGATE_DEFAULT_BRANCH="trunk").zone == "pr/acme/models/branch_main"


def test_a_job_of_no_branch_only_reads() -> None:
    found = event("branch", BRANCH_NAME="", BRANCH_IS_PRIMARY="", GIT_COMMIT="")
    assert (found.revisions, found.checked_out, found.zone) == (Usual(), "", None)


def test_a_tag_is_compared_with_the_release_before_or_not_at_all() -> None:
    with pytest.raises(ConfigError, match="a tag says nothing of what to compare with"):
        event("branch", TAG_NAME="v2")
    found = event("branch", AskedRevisions(since_release=True), TAG_NAME="v2")
    assert (found.revisions, found.checked_out, found.zone) == (Usual(), HEAD, None)


def test_a_commit_that_is_none_is_refused() -> None:
    with pytest.raises(ConfigError, match="GIT_COMMIT is not a commit"):
        event("branch", GIT_COMMIT="--upload-pack=x")
