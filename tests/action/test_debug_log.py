"""The debug log of a job that was started again with it."""

from __future__ import annotations

from pathlib import Path

import pytest

from tunegate_action.debug_log import is_debug, show_debug
from tunegate_action.inputs import read_request

CONFIG = """\
models: [{path: "::error::models/*.onnx"}]
targets: [{name: cpu}]
cache: {url: "s3://acme/s3cret-value"}
"""


@pytest.fixture
def said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> str:
    monkeypatch.chdir(tmp_path)

    (tmp_path / "tunegate.yaml").write_text(CONFIG)
    show_debug({"GITHUB_REF": "refs/pull/7/merge", "MY_TOKEN": "s3cret-value"})
    return capsys.readouterr().out


def test_it_has_versions_names_and_the_configuration_with_defaults(said: str) -> None:
    for part in ("tunegate 0", "msgspec ", "GITHUB_REF: refs/pull/7/merge", "margin-percent: "):
        assert part in said


def test_it_is_a_group_in_which_nothing_is_a_command_and_no_secret_stands(said: str) -> None:
    first, *inside, last = said.splitlines()
    assert (first, last) == ("::group::tunegate: debug", "::endgroup::")
    assert all(line.startswith("| ") for line in inside)
    assert "s3cret" not in said


def test_a_configuration_that_cannot_be_read_is_said_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    show_debug({"TUNEGATE_CONFIG": "other.yaml"})
    assert "| other.yaml: not found." in capsys.readouterr().out


def test_only_github_asks_for_it_and_then_the_command_says_more() -> None:
    assert is_debug({"RUNNER_DEBUG": "1"})
    assert not is_debug({"RUNNER_DEBUG": "0"})
    assert "--verbose" in read_request({"RUNNER_DEBUG": "1"}).words
    assert "--verbose" not in read_request({}).words
