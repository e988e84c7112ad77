import sys
from collections.abc import Mapping
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tunegate.ci import protocol
from tunegate.ci.conformance import HOST_RULES, SECRET, HostRule
from tunegate.ci.github.host import GitHubHost
from tunegate.ci.gitlab.host import GitLabHost
from tunegate.ci.host_files import dotenv, write_host_file
from tunegate.ci.job_results import told_by_agent
from tunegate.ci.none_host import NoCiHost
from tunegate.errors import OutputError


def test_no_link_is_written_through(tmp_path: Path) -> None:
    precious = tmp_path / "precious"
    precious.write_text("precious")
    (tmp_path / "ci-x").symlink_to(precious)
    write_host_file(tmp_path, "x", "ours")
    assert precious.read_text() == "precious"


def test_a_directory_that_is_gone_is_an_error_that_is_told(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(OutputError):
        write_host_file(tmp_path / "file", "x", "")


@given(st.dictionaries(st.sampled_from("abc"), st.text(max_size=30)))
def test_every_line_is_one_variable_of_ours_whatever_its_value_was(values: dict[str, str]) -> None:
    for line in dotenv(values, limit_bytes=1000).split("\n")[:-1]:
        name, _, value = line.partition("=")
        assert values[name.removeprefix("TUNEGATE_").lower()] == value
        assert not set(value) & set("\"'$`# ")


# The contract of a CI host: those of the core keep it, and a host that breaks a rule is told.

TOKENS = {"TUNEGATE_GITHUB_TOKEN": SECRET, "TUNEGATE_GITLAB_TOKEN": SECRET}


@pytest.mark.parametrize("host", [GitHubHost, GitLabHost, NoCiHost])
@pytest.mark.parametrize("rule", HOST_RULES, ids=lambda rule: rule.name)
def test_every_host_of_the_core_keeps_the_rule(rule: HostRule, host: type[protocol.CiHost]) -> None:
    assert rule.problem(host, TOKENS) == ""


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
def test_a_host_that_breaks_a_rule_is_told(host: type[protocol.CiHost], said: str) -> None:
    problems = []
    for rule in HOST_RULES if host is not object else HOST_RULES[:1]:
        problems += [found] if (found := rule.problem(host, TOKENS)) else []
    assert problems == [said]


COMMAND = protocol.AgentCommand(
    program="some-agent", arguments=("annotate", "a b"), text="# é", variables=("AGENT_TOKEN",)
)


@pytest.fixture
def agent(tmp_path: Path) -> Path:
    """A program that writes down what it was given."""
    program = tmp_path / "bin" / "some-agent"
    program.parent.mkdir()
    program.write_text(
        f'#!/bin/sh\ncd {tmp_path}\nprintf "%s|" "$@" >arguments\ncat >text\nenv >variables\n'
        'test "$AGENT_TOKEN" != wrong || { echo "$AGENT_TOKEN"; exit 3; }\n'
    )
    program.chmod(0o755)
    return program


def test_the_agent_gets_arguments_text_and_its_own_variables(
    agent: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ANOTHER_SECRET", "y")
    environment = {"PATH": f"{agent.parent}:/usr/bin:/bin", "AGENT_TOKEN": "x"}
    assert told_by_agent(COMMAND, environment) == ""
    assert (tmp_path / "arguments").read_text() == "annotate|a b|"
    assert (tmp_path / "text").read_text() == "# é"
    given = (tmp_path / "variables").read_text()
    assert "AGENT_TOKEN=x\n" in given
    assert "ANOTHER_SECRET" not in given


def test_no_agent_is_found_in_a_place_that_is_relative(
    agent: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The checkout is the working directory: it could hold a program of this name."""
    monkeypatch.chdir(agent.parent)
    for searched in ("", ".", ":", "../bin"):
        assert told_by_agent(COMMAND, {"PATH": searched}) == "some-agent was not found"
    here = protocol.AgentCommand(program="some-agent", arguments=(), text="", directory=".")
    assert told_by_agent(here, {"PATH": ""}) == "some-agent was not found"


def test_what_cannot_be_run_is_said(agent: Path) -> None:
    agent.write_text("#!/nowhere\n")
    assert "cannot be run" in told_by_agent(COMMAND, {"PATH": str(agent.parent)})
