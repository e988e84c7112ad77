from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest

from tests.ci.test_flow import RecordingHost
from tests.support.report_parts import finding, verdict
from tunegate.artifacts import artifact_io
from tunegate.artifacts.verdicts import Verdict
from tunegate.ci.fork_report import comment_on_fork
from tunegate.ci.protocol import (
    FinishedRun,
    FinishedRunHost,
    HostRefusedError,
    Links,
    NothingToReportError,
)
from tunegate.errors import ConfigError
from tunegate.settings import CommentWhen

RUN = FinishedRun(
    pull_request=7, tip="a" * 40, source="mallory/models", links=Links(run="https://ci/5")
)
SLOW = verdict("fail", 1, finding("fail", "slower"))
FAST = verdict("pass", 0, finding("pass", ""))
QUIET = verdict("pass", 0)


class FinishingHost(RecordingHost):
    """A CI whose other run has ended."""

    def __init__(self, environment: Mapping[str, str]) -> None:
        super().__init__(environment)
        self.raises: Exception | None = None

    def finished_run(self) -> FinishedRun:
        if self.raises is not None:
            raise self.raises
        return RUN


_: type[FinishedRunHost] = FinishingHost


@pytest.fixture
def host() -> FinishingHost:
    return FinishingHost({})


def commented(
    host: FinishingHost, out: Path, found: Verdict | None, when: CommentWhen = "on-change"
) -> int:
    if found is not None:
        artifact_io.write(out / "verdict.json", found)
    return comment_on_fork(host, {"A_TOKEN": "secret-of-the-job"}, out, when)


def test_the_numbers_are_written_and_the_outputs_decide_nothing(
    host: FinishingHost, tmp_path: Path
) -> None:
    assert commented(host, tmp_path, SLOW) == 0
    (text,) = host.comments
    assert text.startswith("### Unverified, from a run of the fork: 1 check, 1 fail")
    assert "[This run](https://ci/5)" in text
    (report,) = host.told
    assert report.outputs == {"verdict": "unverified", "claimed": "fail"}
    assert report.summary == text


@pytest.mark.parametrize(
    ("found", "when", "updates_only"),
    [
        (SLOW, "on-alert", [False]),
        (FAST, "on-change", [False]),
        (FAST, "on-alert", [True]),
        (QUIET, "on-change", [True]),
        (QUIET, "always", [False]),
        (SLOW, "never", []),
    ],
)
def test_a_fork_is_commented_on_as_the_job_asks(
    host: FinishingHost,
    tmp_path: Path,
    found: Verdict,
    when: CommentWhen,
    updates_only: list[bool],
) -> None:
    assert commented(host, tmp_path, found, when) == 0
    assert host.updates_only == updates_only


def test_a_run_that_kept_no_verdict_is_a_notice(host: FinishingHost, tmp_path: Path) -> None:
    assert commented(host, tmp_path, None) == 0
    (notice,) = host.told[-1].annotations
    assert (notice.level, host.comments) == ("notice", [])
    assert "kept no verdict.json" in notice.text


@pytest.mark.parametrize(
    ("raises", "level", "exit_code"),
    [
        (NothingToReportError("the pull request is closed"), "notice", 0),
        (HostRefusedError("answered 403 to secret-of-the-job"), "error", 4),
        (ConfigError("it is another event"), "error", 2),
    ],
)
def test_why_there_is_no_comment_is_said_without_secrets(
    host: FinishingHost, tmp_path: Path, raises: Exception, level: str, exit_code: int
) -> None:
    host.raises = raises
    assert commented(host, tmp_path, SLOW) == exit_code
    (said,) = host.told[-1].annotations
    assert said.level == level
    assert "secret-of-the-job" not in said.text
    assert not host.comments


def test_a_comment_that_is_refused_is_an_error(host: FinishingHost, tmp_path: Path) -> None:
    host.refuses = "comment"
    assert commented(host, tmp_path, SLOW) == 4
    assert host.told[-1].annotations[0].level == "error"


def test_a_hostile_file_ends_in_no_comment(host: FinishingHost, tmp_path: Path) -> None:
    (tmp_path / "verdict.json").write_text("{}")
    assert commented(host, tmp_path, None) == 2
    assert not host.comments
    assert host.told[-1].outputs == {"verdict": "error"}
