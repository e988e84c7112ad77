from __future__ import annotations

from pathlib import Path

import pytest

from tunegate.cli.ci_option import asked_job
from tunegate.cli.commands.gating import RunOptions
from tunegate.cli.parse import parse


@pytest.mark.parametrize(
    "line",
    [
        ["detect"],
        ["detect", "--base", "main"],
        ["run", "--ci", "auto", "--help"],
        ["run", "--ci"],
        ["doctor", "--ci", "auto"],
        ["rum", "--ci=auto"],
        [],
    ],
)
def test_what_has_no_job_or_is_no_command_is_none(
    line: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert asked_job(line) is None
    assert capsys.readouterr().out == ""


@pytest.mark.parametrize("step", ["run", "plan", "tune", "gate"])
def test_every_step_can_be_a_job(step: str) -> None:
    found = asked_job([step, "--ci", "auto", "--out", "o", "--base", "b", "--policy=p"])
    assert found is not None
    request = found.request
    assert (found.ci, request.step, request.out, request.comment) == (
        *("auto", step),
        Path("o"),
        "never",
    )
    assert (request.asked.base, request.asked.head, request.policy) == ("b", "", "p")


def test_what_a_job_asks_for_is_what_its_command_line_says() -> None:
    line = ["run", "--ci=gitlab", "--comment", "always", "--repository=r", "--since-release"]
    found = asked_job([*line, "--zone", "team/x", "--cache-mode", "off"])
    assert found is not None
    request = found.request
    assert (found.ci, request.comment, request.repository) == ("gitlab", "always", Path("r"))
    assert request.asked.since_release
    assert (request.zone, request.is_without_cache) == ("team/x", True)


def test_the_words_that_are_carried_out_are_of_no_job() -> None:
    found = asked_job(["run", "--ci", "auto", "--minutes", "5"])
    assert found is not None
    options = parse(found.request.words).options
    assert isinstance(options, RunOptions)
    assert options.job.ci == ""
    assert options.settings.overrides.get("budget.minutes") == 5


@pytest.mark.parametrize("named", [[], ["--ci", "auto"]])
def test_a_step_that_names_no_ci_is_a_job_of_the_one_that_it_runs_in(named: list[str]) -> None:
    found = asked_job(["plan", "--json", "--no-base", *named])
    assert found is not None
    assert (found.ci, found.is_named, found.is_json) == ("auto", bool(named), True)
    assert found.request.asked.no_base


@pytest.mark.parametrize("line", [["run", "--ci="], ["run", "--ci", "gitlab", "--ci", ""]])
def test_an_empty_name_is_no_job_without_rules(line: list[str]) -> None:
    """A variable that is not set would let a fork write to the cache."""
    found = asked_job(line)
    assert found is not None
    assert found.ci == ""
