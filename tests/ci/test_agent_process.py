from __future__ import annotations

from pathlib import Path

import pytest

from tunegate.ci.job_results import told_by_agent
from tunegate.ci.protocol import AgentCommand

COMMAND = AgentCommand(
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


def test_a_failure_is_said_without_what_it_printed(
    agent: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    environment = {"PATH": str(agent.parent), "AGENT_TOKEN": "wrong"}
    assert told_by_agent(COMMAND, environment) == "some-agent exited with 3"
    assert capfd.readouterr() == ("", "")


def test_the_directory_that_the_ci_names_comes_first(agent: Path) -> None:
    command = AgentCommand(program="some-agent", arguments=(), text="", directory=str(agent.parent))
    assert told_by_agent(command, {"PATH": ""}) == ""


def test_no_agent_is_found_in_a_place_that_is_relative(
    agent: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The checkout is the working directory: it could hold a program of this name."""
    monkeypatch.chdir(agent.parent)
    for searched in ("", ".", ":", "../bin"):
        assert told_by_agent(COMMAND, {"PATH": searched}) == "some-agent was not found"
    here = AgentCommand(program="some-agent", arguments=(), text="", directory=".")
    assert told_by_agent(here, {"PATH": ""}) == "some-agent was not found"


def test_what_cannot_be_run_is_said(agent: Path) -> None:
    agent.write_text("#!/nowhere\n")
    assert "cannot be run" in told_by_agent(COMMAND, {"PATH": str(agent.parent)})
