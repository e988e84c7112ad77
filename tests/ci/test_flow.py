from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

import msgspec
import pytest

from tests.support.git_repository import Checkout, commit_of, two_branches
from tests.support.report_parts import finding, verdict
from tunegate.artifacts import artifact_io
from tunegate.artifacts.verdicts import Status
from tunegate.ci import protocol
from tunegate.ci.job import Ended, report_stop, run_job
from tunegate.errors import ConfigError, ConfigKey
from tunegate.system.output.directory import opened_output

SECRET = {"A_TOKEN": "secret-of-the-job"}


class RecordingHost:
    """A CI host that records what it is given, in order."""

    def __init__(self, environment: Mapping[str, str]) -> None:
        self.told: list[protocol.JobReport] = []
        self.comments: list[str] = []
        self.updates_only: list[bool] = []
        self.progress: list[protocol.JobProgress] = []
        self.spoken: list[str] = []
        self.found = protocol.JobEvent(revisions=protocol.Usual())
        self.refuses = ""

    @staticmethod
    def is_here(environment: Mapping[str, str]) -> bool:
        return False

    def event(self, asked: protocol.AskedRevisions) -> protocol.JobEvent:
        if self.refuses == "event":
            raise ConfigError("event party is refused")
        return self.found

    def links(self, out: Path) -> protocol.Links:
        return protocol.Links(run="https://ci/1")

    @contextmanager
    def literal_output(self) -> Iterator[None]:
        self.spoken.append("began")
        yield
        self.spoken.append("ended")

    def tell(self, report: protocol.JobReport) -> None:
        if report.progress is not None:
            self.progress.append(report.progress)
        if report.progress is None or report.progress.outcome is not None:
            self.told.append(report)
        if self.refuses == "fails":
            raise ZeroDivisionError

    def comment(
        self, event: protocol.JobEvent, name: str, markdown: str, *, updates_only: bool = False
    ) -> None:
        if self.refuses == "fails":
            raise ZeroDivisionError
        if self.refuses == "comment":
            raise protocol.HostRefusedError(f"the CI answered 403 to {SECRET['A_TOKEN']}")
        self.comments.append(markdown)
        self.updates_only.append(updates_only)


_: type[protocol.CiHost] = RecordingHost


@pytest.fixture
def request_(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> protocol.JobRequest:
    monkeypatch.chdir(two_branches(tmp_path / "origin").path)
    return protocol.JobRequest(words=("run",), step="run", out=tmp_path / "out", comment="always")


@pytest.fixture
def host(request_: protocol.JobRequest) -> RecordingHost:
    made = RecordingHost({})
    made.found = pull_request("a" * 40)
    return made


def pull_request(tip: str) -> protocol.JobEvent:
    return protocol.JobEvent(revisions=protocol.Usual(), pull_request=7, tip=tip)


def ending(
    out: Path, status: Status | None, code: int, problem: str = ""
) -> Callable[[Sequence[str]], Ended]:
    def carried_out(words: Sequence[str]) -> Ended:
        if status is not None:
            found = verdict(status, code, finding(status, "why"))
            artifact_io.write(out / "verdict.json", found)
            artifact_io.write_text(out / "report.md", status)
        return code, problem, None, ()

    return carried_out


def test_the_command_is_told_what_the_event_says_and_prints_no_instruction(
    host: RecordingHost, request_: protocol.JobRequest
) -> None:
    seen: list[Sequence[str]] = []

    def carried_out(words: Sequence[str]) -> Ended:
        seen.append(words)
        assert host.spoken == ["began"]
        return 4, "", None, ()

    assert run_job(host, {}, request_, carried_out) == 4
    (words,) = seen
    assert words[0] == "run"
    assert f"--head={commit_of(Checkout(Path.cwd()), 'main')}" in words
    assert "--cache-mode=ro" in words
    assert host.spoken == ["began", "ended"]


@pytest.mark.parametrize(("status", "code"), [("pass", 0), ("fail", 1), ("inconclusive", 3)])
def test_a_verdict_of_this_run_is_told(
    host: RecordingHost, request_: protocol.JobRequest, status: Status, code: int
) -> None:
    assert run_job(host, {}, request_, ending(request_.out, status, code)) == code
    (report,) = host.told
    assert report.outputs["verdict"] == status
    assert report.summary == f"{status}\n\n[This run](https://ci/1)\n"


@pytest.mark.parametrize("code", [0, 1])
def test_a_pass_or_a_regression_without_a_verdict_is_a_bug(
    host: RecordingHost, request_: protocol.JobRequest, code: int
) -> None:
    assert run_job(host, {}, request_, ending(request_.out, None, code)) == 70
    assert host.told[-1].outputs == {"verdict": "error"}
    assert host.comments == []


def test_a_verdict_with_another_exit_code_did_not_end_this_run(
    host: RecordingHost, request_: protocol.JobRequest
) -> None:
    written = ending(request_.out, "pass", 0)

    def carried_out(words: Sequence[str]) -> Ended:
        written(words)
        return 130, "cancelled", None, ()

    assert run_job(host, {}, request_, carried_out) == 130
    assert [report.outputs["verdict"] for report in host.told] == ["error", "error"]
    assert host.comments == []


def test_a_refused_event_starts_nothing(host: RecordingHost, request_: protocol.JobRequest) -> None:
    host.refuses = "event"
    assert run_job(host, {}, request_, ending(request_.out, "pass", 0)) == 2
    (report,) = host.told
    assert "event party is refused" in report.summary
    assert not request_.out.exists()


def test_a_comment_is_written_only_where_its_own_commit_was_judged_and_somebody_asked(
    host: RecordingHost, request_: protocol.JobRequest
) -> None:
    carried_out = ending(request_.out, "pass", 0)
    head = verdict("pass", 0).revisions.head
    host.found = pull_request(head)
    assert run_job(host, {}, msgspec.structs.replace(request_, comment="never"), carried_out) == 0
    assert host.comments == []
    assert run_job(host, {}, request_, carried_out) == 0
    assert host.comments == ["pass\n\n[This run](https://ci/1)\n"]
    host.found = pull_request("b" * 40)
    run_job(host, {}, request_, carried_out)
    assert len(host.comments) == 1


def test_a_pull_request_without_a_model_only_updates_an_earlier_comment(
    host: RecordingHost, request_: protocol.JobRequest
) -> None:
    def carried_out(words: Sequence[str]) -> Ended:
        artifact_io.write(request_.out / "verdict.json", verdict("pass", 0))
        artifact_io.write_text(request_.out / "report.md", "Pass: 0 models")
        return 0, "", None, ()

    host.found = pull_request(verdict("pass", 0).revisions.head)
    on_change = msgspec.structs.replace(request_, comment="on-change")
    assert run_job(host, {}, on_change, carried_out) == 0
    (text,) = host.comments
    assert text.startswith(
        "### ✅ No configured model changes any more\n\n[This run](https://ci/1)"
    )
    assert host.updates_only == [True]


def test_a_refused_comment_is_a_notice_and_changes_no_verdict(
    host: RecordingHost, request_: protocol.JobRequest
) -> None:
    host.refuses = "comment"
    host.found = pull_request(verdict("fail", 1).revisions.head)
    assert run_job(host, SECRET, request_, ending(request_.out, "fail", 1)) == 1
    (notice,) = host.told[-1].annotations
    assert notice.level == "notice"
    assert notice.text.startswith("the CI answered 403 to ***: the report is in ")


def test_what_went_wrong_is_told_without_secrets(
    host: RecordingHost, request_: protocol.JobRequest
) -> None:
    said = f"{SECRET['A_TOKEN']} is no address"
    assert run_job(host, SECRET, request_, ending(request_.out, None, 2, said)) == 2
    (annotation,) = host.told[-1].annotations
    assert annotation.text == "*** is no address"
    assert SECRET["A_TOKEN"] not in host.told[-1].summary


def test_a_host_that_fails_changes_no_verdict(
    host: RecordingHost, request_: protocol.JobRequest, capsys: pytest.CaptureFixture[str]
) -> None:
    host.refuses = "fails"
    host.found = pull_request(verdict("pass", 0).revisions.head)
    assert run_job(host, {}, request_, ending(request_.out, "pass", 0)) == 0
    assert "the CI was not told (ZeroDivisionError: " in capsys.readouterr().err
    assert "the CI host failed" in host.told[-1].annotations[0].text


@pytest.mark.parametrize(
    ("status", "code", "problem", "outcome"),
    [("fail", 1, "", "failed"), (None, 130, "cancelled", "cancelled"), (None, 4, "", "failed")],
)
def test_a_judging_job_says_that_it_begins_and_how_it_ends(
    host: RecordingHost,
    request_: protocol.JobRequest,
    status: Status | None,
    code: int,
    problem: str,
    outcome: str,
) -> None:
    head = commit_of(Checkout(Path.cwd()), "main")
    host.found = pull_request(head)
    run_job(host, {}, request_, ending(request_.out, status, code, problem))
    begun, ended = host.progress
    assert (begun.commit, begun.outcome) == (head, None)
    assert (ended.commit, ended.outcome) == (head, outcome)


@pytest.mark.parametrize("raised", [KeyboardInterrupt, ZeroDivisionError])
def test_what_has_begun_ends_whatever_happens(
    host: RecordingHost, request_: protocol.JobRequest, raised: type[BaseException]
) -> None:
    def carried_out(words: Sequence[str]) -> Ended:
        with opened_output(request_.out, "run"):
            ending(request_.out, "pass", 0)(words)
        raise raised

    head = commit_of(Checkout(Path.cwd()), "main")
    host.found = pull_request(head)
    if raised is KeyboardInterrupt:
        assert run_job(host, {}, request_, carried_out) == 130
        assert not (request_.out / "verdict.json").exists()
    else:
        with pytest.raises(raised):
            run_job(host, {}, request_, carried_out)
    assert [each.outcome for each in host.progress] == [None, "cancelled"]


def test_what_is_wrong_with_the_configuration_names_its_file_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "tunegate.yaml"
    path.write_text("models: 5\n")
    host = RecordingHost({})
    ended = (2, f"{path}: models: no list.", ConfigKey(str(path), "models"), ())
    assert report_stop(host, {}, tmp_path / "out", ended) == 2
    ((annotation,),) = (report.annotations for report in host.told)
    assert (annotation.file, annotation.line) == ("tunegate.yaml", 1)
    assert annotation.text == "models: no list."
