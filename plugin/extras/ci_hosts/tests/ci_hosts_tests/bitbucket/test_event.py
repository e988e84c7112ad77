from __future__ import annotations

import pytest

from ci_hosts_tests.recorded_environment import HEAD, MAIN, recorded_environment
from tunegate.ci.protocol import AskedRevisions, JobEvent, MergeBase, Usual
from tunegate.errors import ConfigError
from tunegate_ci_hosts.bitbucket.event import bitbucket_event


def event(dump: str, asked: AskedRevisions | None = None, /, **more: str) -> JobEvent:
    environment = {**recorded_environment(f"bitbucket-{dump}"), **more}
    return bitbucket_event(environment, asked or AskedRevisions())


def test_a_pull_request_is_compared_with_its_destination() -> None:
    found = event("pull-request")
    assert found.revisions == MergeBase(target="main")
    assert (found.pull_request, found.tip, found.checked_out) == (19, HEAD, "")
    assert found.zone == "pr/acme/models/19"


def test_a_whole_commit_of_the_destination_is_taken_rather_than_its_branch() -> None:
    found = event("pull-request", BITBUCKET_PR_DESTINATION_COMMIT=MAIN)
    assert found.revisions == MergeBase(target=MAIN)


@pytest.mark.parametrize("origin", ["", "http://bitbucket.org/mallory/models", "x/notacme/models"])
def test_a_fork_writes_nothing(origin: str) -> None:
    assert event("pull-request", BITBUCKET_GIT_HTTP_ORIGIN=origin).zone is None


def test_the_default_branch_that_is_named_teaches_main() -> None:
    found = event("branch")
    assert found.revisions == Usual(default_branch="main")
    assert (found.checked_out, found.zone) == (HEAD, "main")
    assert event("branch", BITBUCKET_BRANCH="topic").zone == "pr/acme/models/branch_topic"
    assert event("branch", TUNEGATE_DEFAULT_BRANCH="").zone == "pr/acme/models/branch_main"


def test_a_custom_pipeline_of_no_branch_writes_nothing() -> None:
    found = event("branch", BITBUCKET_BRANCH="")
    assert (found.revisions, found.zone) == (Usual(default_branch="main"), None)


def test_a_tag_is_compared_with_the_release_before_or_not_at_all() -> None:
    tag = {"BITBUCKET_BRANCH": "", "BITBUCKET_TAG": "v2"}
    with pytest.raises(ConfigError, match="a tag says nothing of what to compare with"):
        event("branch", **tag)
    found = event("branch", AskedRevisions(since_release=True), **tag)
    assert (found.revisions, found.checked_out, found.zone) == (Usual(), HEAD, None)


@pytest.mark.parametrize(
    "more",
    [
        {"BITBUCKET_COMMIT": "main"},
        {"BITBUCKET_PR_ID": "x"},
        {"BITBUCKET_PR_DESTINATION_BRANCH": ""},
        {"BITBUCKET_REPO_FULL_NAME": ".", "BITBUCKET_GIT_HTTP_ORIGIN": "http://bitbucket.org/."},
    ],
)
def test_variables_that_lack_something_are_refused(more: dict[str, str]) -> None:
    with pytest.raises(ConfigError, match="the job cannot be used"):
        event("pull-request", **more)


def test_a_pipeline_of_mercurial_is_refused() -> None:
    with pytest.raises(ConfigError, match="event bookmarks is refused"):
        event("branch", BITBUCKET_BOOKMARK="x")
