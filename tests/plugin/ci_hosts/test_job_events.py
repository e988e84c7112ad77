from __future__ import annotations

from collections.abc import Callable, Mapping

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.plugin.ci_hosts.gitlab.test_event import BRANCH, REQUEST
from tests.plugin.ci_hosts.recorded_environment import BEFORE, HEAD, recorded_environment
from tunegate.ci_hosts.azure.event import azure_event
from tunegate.ci_hosts.bitbucket.event import bitbucket_event
from tunegate.ci_hosts.buildkite.event import buildkite_event
from tunegate.ci_hosts.circleci.event import circleci_event
from tunegate.ci_hosts.gitlab.event import gitlab_event
from tunegate.ci_hosts.jenkins.event import jenkins_event
from tunegate.ci_hosts.job_events import as_asked, of_branch
from tunegate.ci_hosts.protocol import AskedRevisions, JobEvent
from tunegate.ci_hosts.revision_choice import Usual
from tunegate.errors import ConfigError

Reader = Callable[[Mapping[str, str], AskedRevisions], JobEvent]
READERS: dict[str, Reader] = {
    "buildkite": buildkite_event,
    "azure": azure_event,
    "circleci": circleci_event,
    "bitbucket": bitbucket_event,
    "jenkins": jenkins_event,
    "gitlab": gitlab_event,
}
DUMPS = {
    "buildkite": ["pull-request", "fork", "branch"],
    "azure": ["pull-request", "github-fork", "branch"],
    "circleci": ["pull-request", "fork", "branch"],
    "bitbucket": ["pull-request", "branch"],
    "jenkins": ["pull-request", "fork", "branch"],
    "gitlab": ["pull-request", "fork", "branch"],
}
OF_GITLAB = {
    "pull-request": REQUEST,
    "fork": {**REQUEST, "CI_MERGE_REQUEST_SOURCE_PROJECT_ID": "4"},
    "branch": {**BRANCH, "CI_PIPELINE_SOURCE": "push"},
}
VALUES = st.sampled_from(
    ["", "main", "7", "true", "false", "True", "False", HEAD, "../..", "-x", "refs/heads/main"]
) | st.text(max_size=20)
JOBS = [(host, dump) for host, dumps in DUMPS.items() for dump in dumps]


def environment_of(host: str, dump: str) -> dict[str, str]:
    return OF_GITLAB[dump] if host == "gitlab" else recorded_environment(f"{host}-{dump}")


@pytest.mark.parametrize(("host", "dump"), JOBS)
def test_whatever_the_variables_say_a_job_is_refused_or_one_of_its_kind(
    host: str, dump: str
) -> None:
    whole = environment_of(host, dump)

    @given(st.dictionaries(st.sampled_from(sorted(whole)), VALUES, max_size=4))
    def holds(changed: dict[str, str]) -> None:
        try:
            event = READERS[host]({**whole, **changed}, AskedRevisions())
        except ConfigError:
            return
        assert event.zone is None or event.zone == "main" or event.zone.startswith("pr/")
        assert event.zone != "main" or event.pull_request is None
        assert event.checked_out in {"", *changed.values(), *whole.values()}

    holds()


@pytest.mark.parametrize(("host", "dump"), JOBS)
def test_whoever_names_both_revisions_only_reads(host: str, dump: str) -> None:
    environment = environment_of(host, dump)
    event = READERS[host](environment, AskedRevisions(base=BEFORE, head=HEAD))
    assert (event.revisions, event.zone, event.checked_out) == (Usual(), None, "")
    assert (event.pull_request is None) == (dump == "branch")


def test_a_tip_belongs_to_a_pull_request() -> None:
    assert as_asked(7, HEAD).tip == HEAD
    assert as_asked(None, HEAD).tip == ""


def test_a_head_that_somebody_names_does_not_teach_main() -> None:
    asked = AskedRevisions(head=HEAD)
    assert of_branch(asked, HEAD, Usual(), "main").zone is None
    assert of_branch(asked, HEAD, Usual(), "pr/a/branch_x").zone == "pr/a/branch_x"
    assert of_branch(AskedRevisions(), HEAD, Usual(), "main").zone == "main"
