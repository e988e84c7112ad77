from __future__ import annotations

from tunegate.ci.github.host import GitHubHost
from tunegate.ci.none_host import NoCiHost
from tunegate.ci.registry import UntoldHost, command_host

GITHUB = {"GITHUB_ACTIONS": "true"}


def test_a_command_that_names_no_ci_has_the_host_of_the_one_that_it_runs_in() -> None:
    assert command_host("auto", {}, is_named=False, is_json=False) is None
    found = command_host("auto", GITHUB, is_named=False, is_json=False)
    assert isinstance(found, GitHubHost)


def test_a_ci_that_is_named_is_taken_also_outside_of_it() -> None:
    assert isinstance(command_host("auto", {}, is_named=True, is_json=True), NoCiHost)
    assert isinstance(command_host("github", {}, is_named=True, is_json=True), GitHubHost)


def test_what_is_printed_for_a_program_stays_as_it_is() -> None:
    found = command_host("auto", GITHUB, is_named=False, is_json=True)
    assert isinstance(found, UntoldHost)
