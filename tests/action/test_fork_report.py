"""The report of a fork's run, which another job comments."""

import os
import re
from collections.abc import Mapping
from pathlib import Path

import pytest
from markdown_it import MarkdownIt
from msgspec.structs import replace

from tests.ci.test_flow import RecordingHost
from tests.support.report_parts import finding, verdict
from tests.support.reports import KINDS, make_report
from tunegate.artifacts import artifact_io
from tunegate.artifacts.measurements import Interval
from tunegate.artifacts.verdicts import Finding, Verdict
from tunegate.ci import protocol
from tunegate.errors import ArtifactError, ConfigError
from tunegate.settings import CommentWhen
from tunegate_action import fork_report

TIP = "a" * 40
OURS = {"table", "thead", "tbody", "tr", "th", "td", "h3", "p", "code", "strong", "br"}
OURS |= {"blockquote"}
HOSTILE = "</td></table><img src=x onerror=alert(1)>|`[click](https://evil)\n\n# Pass @all #7 !8"


def rendered(found: Verdict) -> str:
    return fork_report.render(found, source="mallory/models", tip=TIP)


@pytest.mark.parametrize("kind", KINDS)
def test_every_report_says_first_that_it_is_unverified(kind: str) -> None:
    text = rendered(make_report(kind).verdict)
    assert text.startswith("### Unverified, from a run of the fork: ")
    assert "They decide nothing" in text.split("\n\n")[1]


def test_the_numbers_are_shown_and_no_sentence_of_the_fork() -> None:
    slow = finding("fail", "merged: all maintainers agreed")
    found = replace(verdict("fail", 1, slow), notes=("a note of the fork",))
    text = rendered(found)
    assert "1 check, 1 failed" in text
    assert f"| `{slow.model}`<br>`{slow.target}` |" in text
    assert "maintainers" not in text
    assert "a note" not in text


def test_names_of_the_fork_add_no_element_to_the_page() -> None:
    hostile = replace(finding("fail", HOSTILE), model=HOSTILE, target=HOSTILE)
    text = rendered(verdict("fail", 1, hostile))
    page = MarkdownIt("commonmark").enable("table").render(text)
    assert set(re.findall(r"</?([a-zA-Z][\w-]*)", page)) <= OURS
    (row,) = [line for line in text.splitlines() if line.startswith("| ❌")]
    assert len(row.split("|")) == len(text.splitlines()[4].split("|"))
    assert "@all" not in re.sub(r"<code>.*?</code>", "", text)


def test_many_checks_are_counted_and_the_worst_are_shown() -> None:
    many = verdict("pass", 0, *[finding("pass", "")] * (fork_report.MAX_FORK_CHECKS + 30))
    text = rendered(many)
    assert (
        f"{fork_report.MAX_FORK_CHECKS + 30} checks, {fork_report.MAX_FORK_CHECKS + 30} pass"
        in text
    )
    assert "… and 30 more checks." in text


GOOD = verdict("fail", 1, finding("fail", "slower"))
WORD = "approved-by-maintainers"


def written_bytes(directory: Path, body: bytes) -> Path:
    (directory / "verdict.json").write_bytes(body)
    return directory


def with_finding(**fields: object) -> Verdict:
    changed: Finding = replace(GOOD.findings[0], **fields)
    return replace(GOOD, findings=(changed,))


def test_a_verdict_that_tunegate_wrote_is_read(tmp_path: Path) -> None:
    artifact_io.write(tmp_path / "verdict.json", GOOD)
    assert fork_report.fork_verdict(tmp_path) == GOOD


def test_a_run_that_kept_none_has_none(tmp_path: Path) -> None:
    assert fork_report.fork_verdict(tmp_path) is None
    assert fork_report.fork_verdict(tmp_path / "missing") is None


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"null",
        b"[]",
        f'{{"{WORD}": 1}}'.encode(),
        b'{"schema": 2}',
        b"[" * 500_000,
        b'{"a":' * 100_000 + b"1" + b"}" * 100_000,
        artifact_io.seal(GOOD).replace(b'"fail"', b'"pass"'),
        artifact_io.seal(GOOD).replace(b'"exit_code": 1', b'"exit_code": NaN'),
        artifact_io.seal(GOOD).replace(b'"exit_code": 1', b'"exit_code": 1e999'),
        artifact_io.seal(GOOD) + b" " * fork_report.MAX_BYTES,
        b"\xff\xfe" * 10,
    ],
    ids=range(12),
)
def test_other_bytes_are_refused_and_nothing_of_them_is_said(tmp_path: Path, body: bytes) -> None:
    with pytest.raises(ArtifactError) as caught:
        fork_report.fork_verdict(written_bytes(tmp_path, body))
    assert WORD not in str(caught.value)


@pytest.mark.parametrize(
    "hostile",
    [
        with_finding(base_ms=-1.0),
        with_finding(head_ms=1e308),
        with_finding(reference_ms=1e8),
        with_finding(change_percent=Interval(low=-1e308, center=0.0, high=1e308)),
        with_finding(change_percent=Interval(low=3.0, center=2.0, high=1.0)),
        with_finding(model="m" * 5000),
        with_finding(target="t" * 5000),
        replace(GOOD, margin_percent=-1.0),
        replace(GOOD, margin_percent=1e300),
        replace(GOOD, findings=GOOD.findings * 1001),
        replace(GOOD, revisions=replace(GOOD.revisions, head=WORD)),
    ],
    ids=range(11),
)
def test_what_cannot_be_is_refused(tmp_path: Path, hostile: Verdict) -> None:
    with pytest.raises(ArtifactError) as caught:
        fork_report.fork_verdict(written_bytes(tmp_path, artifact_io.seal(hostile)))
    assert WORD not in str(caught.value)


def test_only_a_plain_file_in_a_directory_of_its_own_is_read(tmp_path: Path) -> None:
    elsewhere = written_bytes(tmp_path, artifact_io.seal(GOOD))
    linked, piped, nested = (tmp_path / name for name in ("linked", "piped", "nested"))
    for directory in (linked, piped, nested):
        directory.mkdir()
    (linked / "verdict.json").symlink_to(elsewhere / "verdict.json")
    os.mkfifo(piped / "verdict.json")
    (nested / "verdict.json").mkdir()
    (tmp_path / "link").symlink_to(elsewhere)
    for directory in (linked, piped, nested, tmp_path / "link", elsewhere / "verdict.json"):
        with pytest.raises(ArtifactError, match="of the fork's run"):
            fork_report.fork_verdict(directory)


RUN = protocol.FinishedRun(
    pull_request=7, tip="a" * 40, source="mallory/models", links=protocol.Links(run="https://ci/5")
)
SLOW = verdict("fail", 1, finding("fail", "slower"))
FAST = verdict("pass", 0, finding("pass", ""))
QUIET = verdict("pass", 0)


class FinishingHost(RecordingHost):
    """A CI whose other run has ended."""

    def __init__(self, environment: Mapping[str, str]) -> None:
        super().__init__(environment)
        self.raises: Exception | None = None

    def finished_run(self) -> protocol.FinishedRun:
        if self.raises is not None:
            raise self.raises
        return RUN


_: type[protocol.FinishedRunHost] = FinishingHost


@pytest.fixture
def host() -> FinishingHost:
    return FinishingHost({})


def commented(
    host: FinishingHost, out: Path, found: Verdict | None, when: CommentWhen = "on-change"
) -> int:
    if found is not None:
        artifact_io.write(out / "verdict.json", found)
    return fork_report.comment_on_fork(host, {"A_TOKEN": "secret-of-the-job"}, out, when)


def test_the_numbers_are_written_and_no_output_decides(host: FinishingHost, tmp_path: Path) -> None:
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
    host: FinishingHost, tmp_path: Path, found: Verdict, when: CommentWhen, updates_only: list[bool]
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
        (protocol.NothingToReportError("the pull request is closed"), "notice", 0),
        (protocol.HostRefusedError("answered 403 to secret-of-the-job"), "error", 4),
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
