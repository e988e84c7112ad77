"""Attacks by a cache that comes with the checkout."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.adversary.pull_request import PullRequest

pytestmark = pytest.mark.e2e


def test_records_that_a_pull_request_commits_are_no_cache(tmp_path: Path) -> None:
    pull_request = PullRequest(tmp_path)
    pull_request.write("cache/ms1/z/main/claims", "the fastest of all")
    pull_request.workspace.git("add", "-f", "cache")
    pull_request.make_twice_as_slow()
    judged = pull_request.judge()
    assert judged.exit_code == 2
    assert "cache.url: cache: git tracks files in it" in judged.err


def test_a_link_in_the_place_of_the_cache_is_not_followed(tmp_path: Path) -> None:
    pull_request = PullRequest(tmp_path)
    precious = tmp_path / "precious"
    precious.mkdir()
    (pull_request.root / "cache").symlink_to(precious)
    pull_request.workspace.git("add", "-f", "cache")
    pull_request.make_twice_as_slow()
    judged = pull_request.judge()
    assert judged.exit_code == 2
    assert "cache is a symbolic link of the checkout" in judged.err
    assert list(precious.iterdir()) == []


def test_a_name_with_a_line_end_is_no_command_of_the_ci(tmp_path: Path) -> None:
    pull_request = PullRequest(tmp_path)
    pull_request.write("models/a\n::error::told.onnx", "no model")
    pull_request.workspace.commit()
    said = pull_request.workspace.tunegate("detect", "--base", "main")
    lines = (said.stdout + said.stderr).splitlines()
    assert not [line for line in lines if line.startswith("::")]
    assert "models/a ::error::told.onnx: unreadable" in said.stdout
