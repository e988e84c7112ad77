"""The line that says what to install, wherever a user may name what an extra has."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.plugins.registered_plugin import nothing_installed
from tunegate.ci.registry import opened_host
from tunegate.cli.parse import named_command
from tunegate.errors import ConfigError
from tunegate.known_extras import missing, refuse_missing_ci

AZURE = {"TF_BUILD": "True"}


@pytest.fixture(autouse=True)
def core_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    nothing_installed(tmp_path, monkeypatch)


def refused(asked: str) -> str:
    with pytest.raises(ConfigError) as caught:
        opened_host(asked, AZURE)
    assert "\n" not in str(caught.value)
    return str(caught.value)


def test_a_ci_that_is_named_says_its_extra() -> None:
    assert refused("azure") == (
        'CI azure is not installed. Install it: pip install "tunegate[ci-hosts]"'
    )


def test_a_job_of_a_known_ci_is_not_taken_for_one_of_no_ci() -> None:
    line = refused("auto")
    assert line.startswith("this is a job of azure (TF_BUILD is set)")
    assert line.endswith('pip install "tunegate[ci-hosts]"')
    assert type(opened_host("none", AZURE)).__name__ == "NoCiHost"


def test_half_of_what_a_job_has_is_no_job() -> None:
    refuse_missing_ci({"JENKINS_URL": "https://ci"}, ())
    with pytest.raises(ConfigError, match="a job of jenkins"):
        refuse_missing_ci({"JENKINS_URL": "https://ci", "BUILD_TAG": "j-1"}, ())
    refuse_missing_ci(AZURE, ("azure",))


def test_a_name_that_no_extra_has_is_left_to_whoever_asks() -> None:
    assert missing("command", "detct") == ""
    assert missing("runtime", "azure") == ""
    with pytest.raises(ConfigError, match="Did you mean detect"):
        named_command(["detct"])


def test_a_command_and_a_runtime_are_told_as_what_they_are() -> None:
    assert missing("command", "study").startswith("tunegate study is not installed. Install")
    assert missing("runtime", "hybrid").startswith("runtime hybrid is not installed. Install")
