from __future__ import annotations

import pytest

from ci_hosts_tests.recorded_environment import BEFORE, HEAD, recorded_environment
from tunegate.ci.events import RefusedEvent
from tunegate.ci.protocol import AskedRevisions, JobEvent, MergeBase, Range, Usual
from tunegate.errors import ConfigError
from tunegate_ci_hosts.buildkite.event import buildkite_event
from tunegate_ci_hosts.buildkite.event_table import BUILDKITE_EVENTS


def event(dump: str, asked: AskedRevisions | None = None, /, **more: str) -> JobEvent:
    environment = {**recorded_environment(f"buildkite-{dump}"), **more}
    return buildkite_event(environment, asked or AskedRevisions())


def test_a_pull_request_is_compared_with_its_target_branch() -> None:
    found = event("pull-request", BUILDKITE_PULL_REQUEST_BASE_BRANCH="release/2")
    assert found.revisions == MergeBase(target="release/2")
    assert (found.pull_request, found.tip, found.checked_out) == (123, HEAD, "")
    assert found.zone == "pr/acme/models/123"


@pytest.mark.parametrize(
    "address",
    [
        "https://github.com/acme/models",
        "https://token@github.com/Acme/models.git/",
        "ssh://git@github.com:22/acme/models.git",
        "git@github.com:acme/models.git",
    ],
)
def test_a_repository_has_many_addresses(address: str) -> None:
    assert event("pull-request", BUILDKITE_PULL_REQUEST_REPO=address).zone == "pr/acme/models/123"


@pytest.mark.parametrize("address", ["", "git://github.com.evil.org/acme/models.git", "x", "a:b:c"])
def test_a_fork_writes_nothing(address: str) -> None:
    assert event("fork").zone is None
    assert event("pull-request", BUILDKITE_PULL_REQUEST_REPO=address).zone is None


def test_a_pipeline_of_others_can_say_anything_and_writes_nothing() -> None:
    assert event("pull-request", BUILDKITE_SOURCE="trigger_job").zone is None
    for source in ("trigger_job", "api", "ui"):
        assert event("branch", BUILDKITE_SOURCE=source).zone is None


def test_a_merge_queue_is_compared_with_what_it_merges_onto() -> None:
    queue = {
        "BUILDKITE_BRANCH": "gh-readonly-queue/main/pr-123-abc",
        "BUILDKITE_MERGE_QUEUE_BASE_BRANCH": "main",
        "BUILDKITE_MERGE_QUEUE_BASE_COMMIT": BEFORE,
    }
    found = event("branch", **queue)
    assert found.revisions == Range(base=BEFORE, head=HEAD)
    assert (found.checked_out, found.zone) == (HEAD, "pr/acme/models/queue")


@pytest.mark.parametrize("source", ["webhook", "schedule"])
def test_the_default_branch_teaches_main_and_another_does_not(source: str) -> None:
    found = event("branch", BUILDKITE_SOURCE=source)
    assert found.revisions == Usual(default_branch="main")
    assert (found.checked_out, found.zone) == (HEAD, "main")
    other = event("branch", BUILDKITE_SOURCE=source, BUILDKITE_BRANCH="feat/é")
    assert str(other.zone).startswith("pr/acme/models/branch_feat__-")


def test_a_build_without_a_commit_is_about_what_is_checked_out() -> None:
    assert event("branch", BUILDKITE_COMMIT="HEAD", BUILDKITE_SOURCE="schedule").checked_out == ""


def test_a_tag_is_compared_with_the_release_before_or_not_at_all() -> None:
    with pytest.raises(ConfigError, match="a tag says nothing of what to compare with"):
        event("branch", BUILDKITE_TAG="v2")
    found = event("branch", AskedRevisions(since_release=True), BUILDKITE_TAG="v2")
    assert (found.revisions, found.checked_out, found.zone) == (Usual(), HEAD, None)


@pytest.mark.parametrize(
    "more",
    [
        {"BUILDKITE_COMMIT": "main"},
        {"BUILDKITE_COMMIT": "HEAD"},
        {"BUILDKITE_PULL_REQUEST": "../7"},
        {"BUILDKITE_PULL_REQUEST_BASE_BRANCH": ""},
        {"BUILDKITE_PIPELINE_SLUG": "../../main"},
    ],
)
def test_variables_that_lack_something_are_refused(more: dict[str, str]) -> None:
    with pytest.raises(ConfigError, match="the job cannot be used"):
        event("pull-request", **more)


REFUSED = [name for name, row in BUILDKITE_EVENTS.items() if isinstance(row, RefusedEvent)]


@pytest.mark.parametrize("source", [*REFUSED, "", "invented"])
def test_a_source_that_is_not_known_is_refused(source: str) -> None:
    with pytest.raises(ConfigError, match=r"(Update|name) .*\w") as caught:
        event("branch", BUILDKITE_SOURCE=source)
    assert caught.value.exit_code == 2
