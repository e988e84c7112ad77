"""Every host of this extra keeps the contract, and is found by the environment of its job."""

from __future__ import annotations

import pytest

from ci_hosts_tests.recorded_environment import recorded_environment
from tunegate.ci.conformance import HOST_RULES, SECRET, HostRule
from tunegate.ci.protocol import CiHost
from tunegate.ci.registry import job_event, opened_host
from tunegate_ci_hosts.azure.host import AzureHost
from tunegate_ci_hosts.bitbucket.host import BitbucketHost
from tunegate_ci_hosts.buildkite.host import BuildkiteHost
from tunegate_ci_hosts.circleci.host import CircleCiHost
from tunegate_ci_hosts.jenkins.host import JenkinsHost

HOSTS: dict[str, type[CiHost]] = {
    "azure": AzureHost,
    "bitbucket": BitbucketHost,
    "buildkite": BuildkiteHost,
    "circleci": CircleCiHost,
    "jenkins": JenkinsHost,
}
TOKENS = {"TUNEGATE_BITBUCKET_TOKEN": SECRET, "SYSTEM_ACCESSTOKEN": SECRET}


@pytest.mark.parametrize("host", HOSTS.values(), ids=list(HOSTS))
@pytest.mark.parametrize("rule", HOST_RULES, ids=lambda rule: rule.name)
def test_every_host_keeps_the_rule(rule: HostRule, host: type[CiHost]) -> None:
    assert rule.problem(host, TOKENS) == ""


@pytest.mark.parametrize("name", HOSTS)
def test_a_job_is_known_by_its_whole_environment(name: str) -> None:
    environment = recorded_environment(f"{name}-pull-request")
    assert type(opened_host("auto", environment)) is HOSTS[name]


def test_the_event_of_a_job_is_told_without_its_ci_being_named() -> None:
    event = job_event(recorded_environment("buildkite-pull-request"))
    assert event is not None
    assert event.pull_request is not None
