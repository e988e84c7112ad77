from __future__ import annotations

from pathlib import Path

import pytest

from tunegate.system.git.process import git_environment, is_of_a_fetch

ROOT = Path("/srv/project")


@pytest.mark.parametrize(
    "name", ["GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE", "GIT_EXTERNAL_DIFF", "GIT_CONFIG"]
)
def test_variables_of_another_repository_are_left_out(name: str) -> None:
    assert name not in git_environment(ROOT, {name: "/elsewhere"})


def test_git_asks_nobody_and_looks_no_further_than_the_root() -> None:
    found = git_environment(ROOT, {"GIT_TERMINAL_PROMPT": "1", "HOME": "/home"})
    assert found["GIT_TERMINAL_PROMPT"] == "0"
    assert found["GIT_CEILING_DIRECTORIES"] == "/srv"
    assert (found["LC_ALL"], found["HOME"]) == ("C", "/home")


def test_no_address_is_a_command_even_where_the_job_allows_it() -> None:
    protocols = "GIT_ALLOW_PROTOCOL"
    assert git_environment(ROOT, {})[protocols] == "file:git:http:https:ssh"
    assert git_environment(ROOT, {protocols: "https:ext:fd:lfs"})[protocols] == "https:lfs"


@pytest.mark.parametrize(
    ("key", "is_kept"),
    [
        ("credential.helper", True),
        ("core.sshCommand", True),
        ("HTTP.proxy", True),
        ("core.hooksPath", False),
        ("diff.external", False),
        ("filter.lfs.smudge", False),
    ],
)
def test_a_fetch_keeps_what_names_servers_and_nothing_else(key: str, is_kept: bool) -> None:
    assert is_of_a_fetch(key) == is_kept
