from __future__ import annotations

from pathlib import Path

import pytest

from tests.ci.gitlab.test_event import REQUEST
from tests.plugins.registered_plugin import install_into, register
from tunegate.ci.github.host import GitHubHost
from tunegate.ci.none_host import NoCiHost
from tunegate.ci.registry import HOST_GROUP, job_event, opened_host, run_address
from tunegate.errors import ConfigError, EnvironmentUnfitError

GITHUB = {
    "GITHUB_ACTIONS": "true",
    "GITHUB_SERVER_URL": "https://github.com",
    "GITHUB_REPOSITORY": "a/b",
    "GITHUB_RUN_ID": "17",
}


@pytest.fixture
def environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A directory that packages are installed into."""
    install_into(tmp_path, monkeypatch)
    return tmp_path


def test_a_host_is_opened_by_name_wherever_it_is() -> None:
    assert isinstance(opened_host("github", {}), GitHubHost)


def test_the_host_of_this_job_is_found_and_elsewhere_there_is_none() -> None:
    assert isinstance(opened_host("auto", GITHUB), GitHubHost)
    assert isinstance(opened_host("auto", {}), NoCiHost)


def test_the_event_of_this_job_is_told_without_being_named() -> None:
    event = job_event({**REQUEST, "GITLAB_CI": "true"})
    assert event is not None
    assert event.pull_request is not None
    elsewhere = job_event({})
    assert elsewhere is not None
    assert elsewhere.pull_request is None


def test_a_job_that_contradicts_itself_has_no_event_and_ends_nothing() -> None:
    assert job_event(GITHUB) is None


def test_an_unknown_name_is_answered_with_the_known_ones() -> None:
    with pytest.raises(ConfigError, match=r"Known are .*github.*none"):
        opened_host("hubgit", {})


def test_a_run_has_an_address_where_its_host_says_one() -> None:
    assert run_address(GITHUB) == "https://github.com/a/b/actions/runs/17"
    assert run_address({"BUILD_URL": "https://ci/1"}) == "https://ci/1"
    assert run_address({}) == ""


def test_what_looks_like_two_hosts_must_be_named(environment: Path) -> None:
    register(environment, "twin-1.0", HOST_GROUP, "twin", "tunegate.ci.github.host:GitHubHost")
    assert isinstance(opened_host("twin", {}), GitHubHost)
    with pytest.raises(ConfigError, match=r"github and of twin.*--ci"):
        opened_host("auto", GITHUB)
    assert run_address(GITHUB) == ""


def test_a_package_that_cannot_be_used_is_named_when_it_is_asked_for(environment: Path) -> None:
    register(environment, "broken-1.0", HOST_GROUP, "broken", "nowhere_to_be_found:Host")
    assert isinstance(opened_host("github", {}), GitHubHost)
    with pytest.raises(EnvironmentUnfitError, match=r"broken 1\.0: .* cannot be loaded"):
        opened_host("broken", {})


def test_a_host_that_fails_costs_no_more_than_the_address(environment: Path) -> None:
    register(environment, "odd-1.0", HOST_GROUP, "odd", "tunegate.errors:PASS")
    assert run_address(GITHUB) == ""


def test_no_package_takes_the_name_of_a_host_of_ours(environment: Path) -> None:
    register(environment, "thief-1.0", HOST_GROUP, "github", "tunegate.ci.none_host:GitHubHost")
    assert isinstance(opened_host("github", {}), GitHubHost)


@pytest.mark.parametrize("value", ["json:JSONDecodeError", "math:pi", "math:sqrt"])
def test_what_is_no_host_is_named_and_is_no_bug_of_ours(environment: Path, value: str) -> None:
    register(environment, "odd-1.0", HOST_GROUP, "odd", value)
    with pytest.raises(EnvironmentUnfitError, match=r"^odd 1\.0: .*no CI host"):
        opened_host("auto", {})
    assert isinstance(opened_host("none", {}), NoCiHost)
