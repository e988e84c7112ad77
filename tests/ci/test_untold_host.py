from __future__ import annotations

from pathlib import Path

import pytest

from tunegate.ci.github.host import GitHubHost
from tunegate.ci.protocol import Annotation, AskedRevisions, JobReport
from tunegate.ci.registry import UntoldHost
from tunegate.errors import ConfigError

GITHUB = {
    "GITHUB_ACTIONS": "true",
    "GITHUB_SERVER_URL": "https://github.com",
    "GITHUB_REPOSITORY": "a/b",
    "GITHUB_RUN_ID": "17",
}


def test_nothing_is_told_on_standard_output(capsys: pytest.CaptureFixture[str]) -> None:
    host = UntoldHost(GitHubHost(GITHUB))
    with host.literal_output():
        annotation = Annotation(level="error", title="tunegate", text="slower")
        host.tell(JobReport(annotations=[annotation], outputs={"verdict": "fail"}))
    said = capsys.readouterr()
    assert (said.out, said.err) == ("", "tunegate: error: slower\n")


def test_what_is_compared_and_where_the_job_is_the_host_says() -> None:
    host = UntoldHost(GitHubHost(GITHUB))
    assert not host.is_here(GITHUB)
    assert host.links(Path()) == GitHubHost(GITHUB).links(Path())
    with pytest.raises(ConfigError, match="GITHUB_EVENT_NAME is not set"):
        host.event(AskedRevisions())
    event = host.event(AskedRevisions(base="a", head="b"))
    host.comment(event, "name", "text")
