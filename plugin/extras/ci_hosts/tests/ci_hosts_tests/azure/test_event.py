from __future__ import annotations

import pytest

from ci_hosts_tests.recorded_environment import HEAD, MERGE, recorded_environment
from tunegate.ci.events import RefusedEvent
from tunegate.ci.protocol import AskedRevisions, JobEvent, MergeBase, Usual
from tunegate.errors import ConfigError
from tunegate_ci_hosts.azure.event import azure_event
from tunegate_ci_hosts.azure.event_table import AZURE_EVENTS

REPOSITORY = "5f4dcc3b-5aa7-65d6-1d83-27deb882cf99"


def event(dump: str, asked: AskedRevisions | None = None, /, **more: str) -> JobEvent:
    environment = {**recorded_environment(f"azure-{dump}"), **more}
    return azure_event(environment, asked or AskedRevisions())


def test_the_merge_commit_of_a_pull_request_is_compared_with_its_target() -> None:
    found = event("pull-request")
    assert found.revisions == MergeBase(target="main")
    assert (found.checked_out, found.tip, found.pull_request) == (MERGE, HEAD, 7)
    assert found.zone == f"pr/{REPOSITORY}/7"


def test_a_pull_request_of_github_has_its_own_number() -> None:
    found = event("github-fork", SYSTEM_PULLREQUEST_ISFORK="False")
    assert (found.pull_request, found.zone) == (12, "pr/acme/models/12")
    assert found.revisions == MergeBase(target="main")


@pytest.mark.parametrize("said", ["True", "true", "", "0"])
def test_a_fork_writes_nothing_nor_does_one_that_may_be(said: str) -> None:
    assert event("github-fork").zone is None
    assert event("pull-request", SYSTEM_PULLREQUEST_ISFORK=said).zone is None


@pytest.mark.parametrize("reason", ["IndividualCI", "BatchedCI", "Schedule"])
def test_the_default_branch_that_is_named_teaches_main(reason: str) -> None:
    found = event("branch", BUILD_REASON=reason)
    assert found.revisions == Usual(default_branch="main")
    assert (found.checked_out, found.zone) == (HEAD, "main")


def test_without_the_name_of_the_default_branch_nothing_teaches_main() -> None:
    found = event("branch", TUNEGATE_DEFAULT_BRANCH="")
    assert (found.revisions, found.zone) == (Usual(), f"pr/{REPOSITORY}/branch_main")


@pytest.mark.parametrize("reason", ["Manual", "ResourceTrigger", "BuildCompletion"])
def test_whoever_starts_a_run_chooses_its_commit_so_that_it_writes_nothing(reason: str) -> None:
    found = event("branch", BUILD_REASON=reason)
    assert (found.checked_out, found.zone) == (HEAD, None)


def test_a_tag_is_compared_with_the_release_before_or_not_at_all() -> None:
    with pytest.raises(ConfigError, match="a tag says nothing of what to compare with"):
        event("branch", BUILD_SOURCEBRANCH="refs/tags/v2")
    asked = AskedRevisions(since_release=True)
    found = event("branch", asked, BUILD_SOURCEBRANCH="refs/tags/v2")
    assert (found.revisions, found.checked_out, found.zone) == (Usual(), HEAD, None)


@pytest.mark.parametrize(
    "more",
    [
        {"BUILD_SOURCEVERSION": "C1234"},
        {"SYSTEM_PULLREQUEST_SOURCECOMMITID": ""},
        {"SYSTEM_PULLREQUEST_PULLREQUESTID": "seven"},
        {"SYSTEM_PULLREQUEST_TARGETBRANCH": "refs/heads/"},
        {"BUILD_REPOSITORY_ID": "a b"},
        {"BUILD_REASON": "Schedule"},
    ],
)
def test_variables_that_contradict_each_other_are_refused(more: dict[str, str]) -> None:
    with pytest.raises(ConfigError, match="the job cannot be used"):
        event("pull-request", **more)


REFUSED = [name for name, row in AZURE_EVENTS.items() if isinstance(row, RefusedEvent)]


@pytest.mark.parametrize("reason", [*REFUSED, "", "invented"])
def test_a_reason_that_compares_nothing_is_refused(reason: str) -> None:
    with pytest.raises(ConfigError, match=r"(Use|name) .*\w") as caught:
        event("pull-request", BUILD_REASON=reason)
    assert caught.value.exit_code == 2
