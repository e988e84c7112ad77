from __future__ import annotations

import pytest

from ci_hosts_tests.recorded_environment import BEFORE, HEAD, recorded_environment
from tunegate.ci.protocol import AskedRevisions, JobEvent, MergeBase, Push, Usual
from tunegate.errors import ConfigError
from tunegate_ci_hosts.circleci.event import circleci_event


def event(dump: str, asked: AskedRevisions | None = None, /, **more: str) -> JobEvent:
    environment = {**recorded_environment(f"circleci-{dump}"), **more}
    return circleci_event(environment, asked or AskedRevisions())


def test_a_pull_request_without_a_known_target_is_compared_with_the_default_branch() -> None:
    found = event("pull-request")
    assert found.revisions == Usual(default_branch="main")
    assert (found.pull_request, found.checked_out, found.tip) == (41, HEAD, HEAD)
    assert found.zone == "pr/acme/models/41"


def test_the_orb_can_say_the_target() -> None:
    found = event("pull-request", TUNEGATE_TARGET_BRANCH="release/2")
    assert found.revisions == MergeBase(target="release/2")


def test_a_fork_writes_nothing() -> None:
    found = event("fork")
    assert (found.zone, found.pull_request) == (None, 43)
    for name in ("CIRCLE_PR_USERNAME", "CIRCLE_PR_REPONAME", "CIRCLE_PR_NUMBER"):
        assert event("pull-request", **{name: "5"}).zone is None


def test_the_default_branch_has_the_commit_before_where_the_orb_says_it() -> None:
    found = event("branch")
    assert found.revisions == Push(
        before=BEFORE, after=HEAD, default_branch="main", is_default=True
    )
    assert (found.checked_out, found.zone) == (HEAD, "main")


@pytest.mark.parametrize("before", ["", "main", HEAD])
def test_without_the_commit_before_it_has_its_parent(before: str) -> None:
    found = event("branch", TUNEGATE_BASE_REVISION=before)
    assert found.revisions == Usual(default_branch="main")


def test_another_branch_is_compared_with_the_default_one_whatever_was_built_before() -> None:
    found = event("branch", CIRCLE_BRANCH="topic")
    assert found.revisions == Usual(default_branch="main")
    assert found.zone == "pr/acme/models/branch_topic"


def test_without_a_named_default_branch_nothing_teaches_main() -> None:
    assert event("branch", TUNEGATE_DEFAULT_BRANCH="").zone == "pr/acme/models/branch_main"


def test_an_integration_that_does_not_say_whose_branch_it_is_only_reads() -> None:
    for name in ("CIRCLE_PROJECT_USERNAME", "CIRCLE_PROJECT_REPONAME"):
        assert event("branch", **{name: ""}).zone is None
        assert event("pull-request", **{name: ""}).zone is None


def test_a_tag_is_compared_with_the_release_before_or_not_at_all() -> None:
    with pytest.raises(ConfigError, match="a tag says nothing of what to compare with"):
        event("branch", CIRCLE_TAG="v2")
    found = event("branch", AskedRevisions(since_release=True), CIRCLE_TAG="v2")
    assert (found.revisions, found.checked_out, found.zone) == (Usual(), HEAD, None)


def test_the_address_of_a_pull_request_is_of_any_host() -> None:
    address = "https://bitbucket.org/acme/models/pull-requests/5"
    found = event("pull-request", CIRCLE_PULL_REQUESTS="", CIRCLE_PULL_REQUEST=address)
    assert found.pull_request == 5
    none = event("pull-request", CIRCLE_PULL_REQUESTS="", CIRCLE_PULL_REQUEST="https://x/issues/5")
    assert (none.pull_request, none.zone, none.tip) == (None, None, "")


@pytest.mark.parametrize(
    "more", [{"CIRCLE_SHA1": ""}, {"CIRCLE_SHA1": "main"}, {"CIRCLE_PROJECT_USERNAME": ".."}]
)
def test_variables_that_lack_something_are_refused(more: dict[str, str]) -> None:
    with pytest.raises(ConfigError, match="the job cannot be used"):
        event("pull-request", **more)


def test_a_job_of_no_branch_and_no_tag_is_refused() -> None:
    with pytest.raises(ConfigError, match="CIRCLE_BRANCH is not set"):
        event("branch", CIRCLE_BRANCH="")
