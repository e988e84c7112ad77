from __future__ import annotations

from pathlib import Path

import pytest

from tunegate.edges.git.settings import git_environment, is_of_a_fetch

ROOT = Path("/srv/project")


@pytest.mark.parametrize(
    "name", ["GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE", "GIT_EXTERNAL_DIFF", "GIT_CONFIG"]
)
def test_variables_of_another_repository_are_left_out(
    monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    monkeypatch.setenv(name, "/elsewhere")
    assert name not in git_environment(ROOT)


def test_git_asks_nobody_and_looks_no_further_than_the_root(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("GIT_TERMINAL_PROMPT", "1")
    found = git_environment(ROOT)
    assert found["GIT_TERMINAL_PROMPT"] == "0"
    assert found["GIT_CEILING_DIRECTORIES"] == "/srv"
    assert found["LC_ALL"] == "C"


def test_no_address_is_a_command_even_where_the_job_allows_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.delenv("GIT_ALLOW_PROTOCOL", raising=False)
    assert git_environment(ROOT)["GIT_ALLOW_PROTOCOL"] == "file:git:http:https:ssh"
    monkeypatch.setenv("GIT_ALLOW_PROTOCOL", "https:ext:fd:lfs")
    assert git_environment(ROOT)["GIT_ALLOW_PROTOCOL"] == "https:lfs"


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
