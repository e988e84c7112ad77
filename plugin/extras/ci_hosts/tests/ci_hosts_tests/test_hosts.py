"""Every host keeps the contract, one that breaks a rule is told, and a host of this extra is found
by the environment of its job."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from pathlib import Path

import pytest

from ci_hosts_tests.recorded_environment import recorded_environment
from tunegate.ci import protocol
from tunegate.ci.github.host import GitHubHost
from tunegate.ci.gitlab.host import GitLabHost
from tunegate.ci.protocol import CiHost
from tunegate.ci.registry import NoCiHost, job_event, opened_host
from tunegate_ci_hosts.azure.host import AzureHost
from tunegate_ci_hosts.bitbucket.host import BitbucketHost
from tunegate_ci_hosts.buildkite.host import BuildkiteHost
from tunegate_ci_hosts.circleci.host import CircleCiHost
from tunegate_ci_hosts.conformance import HOST_RULES, SECRET, HostRule
from tunegate_ci_hosts.jenkins.host import JenkinsHost

HOSTS: dict[str, type[CiHost]] = {
    "azure": AzureHost,
    "bitbucket": BitbucketHost,
    "buildkite": BuildkiteHost,
    "circleci": CircleCiHost,
    "jenkins": JenkinsHost,
}
OF_THE_CORE: list[type[CiHost]] = [GitHubHost, GitLabHost, NoCiHost]
NAMES_OF_TOKENS = (
    "SYSTEM_ACCESSTOKEN",
    *(f"TUNEGATE_{each}_TOKEN" for each in ("BITBUCKET", "GITHUB", "GITLAB")),
)
TOKENS = dict.fromkeys(NAMES_OF_TOKENS, SECRET)


@pytest.mark.parametrize("host", [*HOSTS.values(), *OF_THE_CORE])
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


# Hosts that break one rule each.


class Everywhere(NoCiHost):
    @staticmethod
    def is_here(environment: Mapping[str, str]) -> bool:
        return True


class KnowsAnAddress(NoCiHost):
    def links(self, out: Path) -> protocol.Links:
        return protocol.Links(run="https://ci/1")


class Guesses(NoCiHost):
    def event(self, asked: protocol.AskedRevisions) -> protocol.JobEvent:
        return protocol.JobEvent(revisions=protocol.Push(before="a" * 40, after="b" * 40))


class TeachesMain(NoCiHost):
    def event(self, asked: protocol.AskedRevisions) -> protocol.JobEvent:
        return protocol.JobEvent(revisions=protocol.Usual(), zone="main")


class RepeatsWhatItIsTold(NoCiHost):
    def tell(self, report: protocol.JobReport) -> None:
        for annotation in report.annotations:
            sys.stderr.write(f"{annotation.text}\n")


class WritesAnywhere(NoCiHost):
    def tell(self, report: protocol.JobReport) -> None:
        if report.directory is not None:
            (report.directory / "report.md").write_text(report.summary)
        for _ in report.annotations:
            sys.stderr.write("x\n")


class ShowsItsToken(NoCiHost):
    def comment(
        self, event: protocol.JobEvent, name: str, markdown: str, *, updates_only: bool = False
    ) -> None:
        raise protocol.HostRefusedError(f"{self._environment}")


@pytest.mark.parametrize(
    ("host", "said"),
    [
        (Everywhere, "it is here where no variable says so"),
        (KnowsAnAddress, "it knows an address that no variable says"),
        (Guesses, "it compares commits that nothing names"),
        (TeachesMain, "whoever names both revisions writes the main zone"),
        (RepeatsWhatItIsTold, "2 annotations are 6 lines"),
        (WritesAnywhere, "the file report.md does not begin with ci-"),
        (ShowsItsToken, "a refusal shows a token"),
        (object, "comment does not take self, event, name, markdown, updates_only"),
    ],
)
def test_a_host_that_breaks_a_rule_is_told(host: type[CiHost], said: str) -> None:
    problems = []
    for rule in HOST_RULES if host is not object else HOST_RULES[:1]:
        problems += [found] if (found := rule.problem(host, TOKENS)) else []
    assert problems == [said]
