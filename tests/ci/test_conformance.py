"""The contract of a CI host: those of the core keep it, and a host that breaks a rule is told."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from pathlib import Path

import pytest

from tunegate.ci.conformance import HOST_RULES, SECRET, HostRule
from tunegate.ci.github.host import GitHubHost
from tunegate.ci.gitlab.host import GitLabHost
from tunegate.ci.none_host import NoCiHost
from tunegate.ci.protocol import (
    AskedRevisions,
    CiHost,
    HostRefusedError,
    JobEvent,
    JobReport,
    Links,
    Push,
    Usual,
)

TOKENS = {"TUNEGATE_GITHUB_TOKEN": SECRET, "TUNEGATE_GITLAB_TOKEN": SECRET}


@pytest.mark.parametrize("host", [GitHubHost, GitLabHost, NoCiHost])
@pytest.mark.parametrize("rule", HOST_RULES, ids=lambda rule: rule.name)
def test_every_host_of_the_core_keeps_the_rule(rule: HostRule, host: type[CiHost]) -> None:
    assert rule.problem(host, TOKENS) == ""


class Everywhere(NoCiHost):
    @staticmethod
    def is_here(environment: Mapping[str, str]) -> bool:
        return True


class KnowsAnAddress(NoCiHost):
    def links(self, out: Path) -> Links:
        return Links(run="https://ci/1")


class Guesses(NoCiHost):
    def event(self, asked: AskedRevisions) -> JobEvent:
        return JobEvent(revisions=Push(before="a" * 40, after="b" * 40))


class TeachesMain(NoCiHost):
    def event(self, asked: AskedRevisions) -> JobEvent:
        return JobEvent(revisions=Usual(), zone="main")


class RepeatsWhatItIsTold(NoCiHost):
    def tell(self, report: JobReport) -> None:
        for annotation in report.annotations:
            sys.stderr.write(f"{annotation.text}\n")


class WritesAnywhere(NoCiHost):
    def tell(self, report: JobReport) -> None:
        if report.directory is not None:
            (report.directory / "report.md").write_text(report.summary)
        for _ in report.annotations:
            sys.stderr.write("x\n")


class ShowsItsToken(NoCiHost):
    def comment(
        self, event: JobEvent, name: str, markdown: str, *, updates_only: bool = False
    ) -> None:
        raise HostRefusedError(f"{self._environment}")


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
