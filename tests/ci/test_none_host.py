from __future__ import annotations

import json
from pathlib import Path

import pytest

from tunegate.ci.github.host import GitHubHost
from tunegate.ci.none_host import NoCiHost
from tunegate.ci.protocol import (
    Annotation,
    AskedRevisions,
    JobReport,
    Links,
    Usual,
)
from tunegate.ci.registry import UntoldHost
from tunegate.errors import ConfigError


def test_it_compares_as_a_person_does_and_leaves_the_cache_to_the_configuration() -> None:
    event = NoCiHost({}).event(AskedRevisions())
    assert (event.revisions, event.zone, event.checked_out) == (Usual(), "", "")


def test_what_a_ci_would_be_told_stands_in_files_and_in_the_log(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    annotation = Annotation(level="error", title="t", text="bad")
    report = JobReport(
        outputs={"verdict": "fail"}, annotations=[annotation], summary="page", directory=tmp_path
    )
    NoCiHost({}).tell(report)
    assert json.loads((tmp_path / "ci-outputs.json").read_text()) == {"verdict": "fail"}
    (told,) = json.loads((tmp_path / "ci-annotations.json").read_text())
    assert (told["level"], told["text"]) == ("error", "bad")
    assert (tmp_path / "ci-summary.md").read_text() == "page"
    assert capsys.readouterr().err == "t: error: bad\n"


def test_where_no_directory_is_ours_nothing_is_written() -> None:
    NoCiHost({}).tell(JobReport(outputs={"verdict": "error"}))


def test_other_cis_say_in_variables_of_theirs_where_a_job_is() -> None:
    assert NoCiHost({"BUILD_URL": "https://ci/7"}).links(Path()) == Links(run="https://ci/7")


GITHUB = {
    "GITHUB_ACTIONS": "true",
    "GITHUB_SERVER_URL": "https://github.com",
    "GITHUB_REPOSITORY": "a/b",
    "GITHUB_RUN_ID": "17",
}


def test_what_is_compared_and_where_the_job_is_the_host_says() -> None:
    host = UntoldHost(GitHubHost(GITHUB))
    assert not host.is_here(GITHUB)
    assert host.links(Path()) == GitHubHost(GITHUB).links(Path())
    with pytest.raises(ConfigError, match="GITHUB_EVENT_NAME is not set"):
        host.event(AskedRevisions())
    event = host.event(AskedRevisions(base="a", head="b"))
    host.comment(event, "name", "text")
