from __future__ import annotations

import pytest
from tests.support.host_events import (
    Reader,
    require_named_revisions_only_read,
    require_sound_events,
)

from ci_hosts_tests.recorded_environment import recorded_environment
from tunegate_ci_hosts.azure.event import azure_event
from tunegate_ci_hosts.bitbucket.event import bitbucket_event
from tunegate_ci_hosts.buildkite.event import buildkite_event
from tunegate_ci_hosts.circleci.event import circleci_event
from tunegate_ci_hosts.jenkins.event import jenkins_event

READERS: dict[str, Reader] = {
    "buildkite": buildkite_event,
    "azure": azure_event,
    "circleci": circleci_event,
    "bitbucket": bitbucket_event,
    "jenkins": jenkins_event,
}
DUMPS = {
    "buildkite": ["pull-request", "fork", "branch"],
    "azure": ["pull-request", "github-fork", "branch"],
    "circleci": ["pull-request", "fork", "branch"],
    "bitbucket": ["pull-request", "branch"],
    "jenkins": ["pull-request", "fork", "branch"],
}
JOBS = [(host, dump) for host, dumps in DUMPS.items() for dump in dumps]


@pytest.mark.parametrize(("host", "dump"), JOBS)
def test_whatever_the_variables_say_a_job_is_refused_or_one_of_its_kind(
    host: str, dump: str
) -> None:
    require_sound_events(READERS[host], recorded_environment(f"{host}-{dump}"))


@pytest.mark.parametrize(("host", "dump"), JOBS)
def test_whoever_names_both_revisions_only_reads(host: str, dump: str) -> None:
    whole = recorded_environment(f"{host}-{dump}")
    require_named_revisions_only_read(READERS[host], whole, is_request=dump != "branch")
