"""Every host of this extra is found by the whole environment of a recorded job."""

from __future__ import annotations

import pytest

from ci_hosts_tests.recorded_environment import recorded_environment
from tunegate.ci_hosts.protocol import CiHost
from tunegate.ci_hosts.registry import job_event, opened_host
from tunegate_ci_hosts.azure.host import AzureHost
from tunegate_ci_hosts.bitbucket.host import BitbucketHost
from tunegate_ci_hosts.buildkite.host import BuildkiteHost
from tunegate_ci_hosts.circleci.host import CircleCiHost
from tunegate_ci_hosts.jenkins.host import JenkinsHost


@pytest.mark.parametrize(
    ("dump", "host"),
    [
        ("buildkite-pull-request", BuildkiteHost),
        ("azure-pull-request", AzureHost),
        ("circleci-pull-request", CircleCiHost),
        ("bitbucket-pull-request", BitbucketHost),
        ("jenkins-pull-request", JenkinsHost),
    ],
)
def test_a_job_is_known_by_its_whole_environment(dump: str, host: type[CiHost]) -> None:
    assert type(opened_host("auto", recorded_environment(dump))) is host


def test_the_event_of_a_job_is_told_without_its_ci_being_named() -> None:
    event = job_event(recorded_environment("buildkite-pull-request"))
    assert event is not None
    assert event.pull_request is not None
