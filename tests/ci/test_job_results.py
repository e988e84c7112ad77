import os
import re
from collections.abc import Mapping
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from markdown_it import MarkdownIt
from msgspec.structs import replace

from tests.ci.test_flow import RecordingHost
from tests.report.budgeted import AFTER, BEFORE
from tests.support.report_parts import finding, verdict
from tests.support.reports import KINDS, make_report
from tunegate.artifacts import artifact_io
from tunegate.artifacts.builds import ShippedErrors
from tunegate.artifacts.changes import PolicyChange
from tunegate.artifacts.measurements import Interval
from tunegate.artifacts.verdicts import Finding, Status, Verdict
from tunegate.ci import fork_report, job_results, protocol
from tunegate.ci.github.host import command_of
from tunegate.ci.host_files import log_line
from tunegate.ci.protocol import AgentCommand, Annotation, JobProgress, JobReport
from tunegate.ci.registry import NoCiHost
from tunegate.errors import ArtifactError, ConfigError
from tunegate.report.escape import code_element, prose
from tunegate.settings import CommentWhen
from tunegate.system.output.directory import opened_output
from tunegate.system.output.owned_directory import held_directory


def written(out: Path, status: Status, exit_code: int) -> None:
    artifact_io.write(out / "verdict.json", verdict(status, exit_code, finding(status, "why")))
    artifact_io.write_text(out / "report.md", status)
    artifact_io.write_text(out / "report.html", status)


def test_what_this_run_wrote_is_its_result(tmp_path: Path) -> None:
    before = job_results.stamps(tmp_path)
    written(tmp_path, "pass", 0)
    found = job_results.read_results(tmp_path, before, 0)
    assert (found.status, found.markdown) == ("pass", "pass")
    assert found.report == tmp_path / "report.html"


@pytest.mark.parametrize("status", ["pass", "error", "fail"])
def test_what_an_earlier_run_wrote_is_not_also_with_the_same_exit_code(
    tmp_path: Path, status: Status
) -> None:
    code = {"pass": 0, "error": 2, "fail": 1}[status]
    written(tmp_path, status, code)
    found = job_results.read_results(tmp_path, job_results.stamps(tmp_path), code)
    assert (found.verdict, found.markdown, found.report) == (None, "", None)
    assert found.outputs()["verdict"] == ("error" if code else "")
    assert found.annotations(Path(), Path("tunegate.yaml")) == []


def test_a_file_that_is_written_again_in_the_same_instant_is_another_one(tmp_path: Path) -> None:
    written(tmp_path, "pass", 0)
    before = job_results.stamps(tmp_path)
    times = (tmp_path / "verdict.json").stat()
    written(tmp_path, "pass", 0)
    os.utime(tmp_path / "verdict.json", ns=(times.st_atime_ns, times.st_mtime_ns))
    assert job_results.read_results(tmp_path, before, 0).status == "pass"


@pytest.mark.parametrize("exit_code", [1, 2, 4, 70, 130])
def test_a_verdict_of_another_exit_code_ended_no_run(tmp_path: Path, exit_code: int) -> None:
    before = job_results.stamps(tmp_path)
    written(tmp_path, "pass", 0)
    found = job_results.read_results(tmp_path, before, exit_code)
    assert (found.status, found.verdict, found.markdown) == ("error", None, "")


def test_no_link_is_read(tmp_path: Path) -> None:
    before = job_results.stamps(tmp_path)
    (tmp_path / "secret").write_text("secret")
    artifact_io.write(tmp_path / "verdict.json", verdict("pass", 0))
    (tmp_path / "report.md").symlink_to(tmp_path / "secret")
    assert job_results.read_results(tmp_path, before, 0).markdown == ""


def test_a_finding_stands_at_its_model_and_a_loosened_rule_at_its_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("gate.yaml").write_text("models: []\ngate:\n  margin-percent: 9\n")
    out = tmp_path / "out"
    slow = finding("fail", "slower", model="models/a.onnx@small")
    rule = PolicyChange(
        key="gate.margin-percent", old="3", new="9", effect="loosened", counts="once merged"
    )
    waivers = replace(rule, key="waivers.yaml")
    found = verdict("fail", 1, slow, policy_changes=(rule, waivers))
    artifact_io.write(out / "verdict.json", found)
    Path("waivers.yaml").write_text("[]")
    shown = job_results.read_results(out, {}, 1).annotations(Path(), Path("gate.yaml"))
    places = [("gate.yaml", 3), ("waivers.yaml", 1), ("models/a.onnx", 1)]
    assert [(each.file, each.line) for each in shown] == places
    inside = job_results.read_results(out, {}, 1).annotations(Path("sub"), Path("missing.yaml"))
    places = [("", 0), ("", 0), ("sub/models/a.onnx", 1)]
    assert [(each.file, each.line) for each in inside] == places


def test_a_secret_that_a_committed_file_repeats_is_shown_nowhere(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    secret = "of_$the@*_job"
    monkeypatch.setenv("MY_SECRET", secret)
    slow = finding("fail", f"waived: {secret}", model=f"models/{secret}.onnx")
    artifact_io.write(tmp_path / "verdict.json", verdict("fail", 1, slow))
    artifact_io.write_text(tmp_path / "report.md", f"{prose(secret)} {code_element(secret)}")
    found = job_results.read_results(tmp_path, {}, 1)
    (shown,) = found.annotations(Path(), Path("gate.yaml"))
    assert secret not in shown.title + shown.text
    assert found.markdown == "*** <code>***</code>"


def test_an_error_that_got_larger_for_nothing_is_a_warning_at_its_model(tmp_path: Path) -> None:
    out = tmp_path
    moved = ShippedErrors(base=BEFORE, head=AFTER, moved=("max-error",))
    found = verdict("pass", 0, finding("pass", "why", model="models/a.onnx", accuracy=moved))
    artifact_io.write(out / "verdict.json", found)
    (shown,) = job_results.read_results(out, {}, 0).annotations(Path(), Path("gate.yaml"))
    assert (shown.level, shown.title) == ("warning", "tunegate: error-moved")
    assert (shown.file, shown.line) == ("models/a.onnx", 1)
    assert shown.text.startswith("models/a.onnx on cpu: the max-error of what ships rose from")


REPORT = JobReport(outputs={"verdict": "pass"})


class HostWithAnAgent(NoCiHost):
    """A CI whose agent shows the summary."""

    def tell(  # type: ignore[override]  # none of its own has an agent
        self, report: JobReport
    ) -> AgentCommand | None:
        if not report.summary:
            return None
        return AgentCommand(program="some-agent", arguments=("annotate",), text=report.summary)


@pytest.fixture
def out(tmp_path: Path) -> Path:
    """The directory of a run that has ended."""
    with opened_output(tmp_path / "out", "run"):
        return tmp_path / "out"


def files_of(out: Path) -> Mapping[str, str]:
    return {path.name: path.read_text() for path in out.glob("ci-*")} if out.exists() else {}


def test_files_go_to_a_directory_of_ours_and_the_next_run_forgets_them(out: Path) -> None:
    job_results.report_to_host(NoCiHost({}), REPORT, out)
    assert "ci-outputs.json" in files_of(out)
    with opened_output(out, "gate") as directory:
        directory.forget(since="gate")
    assert files_of(out) == {}


def test_a_directory_of_somebody_else_gets_no_file(tmp_path: Path) -> None:
    (tmp_path / "thesis.tex").touch()
    job_results.report_to_host(NoCiHost({}), REPORT, tmp_path)
    job_results.report_to_host(NoCiHost({}), REPORT, tmp_path / "not there")
    assert files_of(tmp_path) == {}
    assert not (tmp_path / "not there").exists()


def test_no_file_gets_between_those_of_another_run(out: Path) -> None:
    with held_directory(out, "another"):
        job_results.report_to_host(NoCiHost({}), REPORT, out)
    assert files_of(out) == {}


def test_a_file_that_cannot_be_written_is_one_line(
    out: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (out / "ci-summary.md").mkdir()
    job_results.report_to_host(NoCiHost({}), REPORT, out)
    assert capsys.readouterr().err.count("\n") <= 1


def test_what_a_hosts_agent_cannot_do_is_one_line_and_changes_nothing(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("PATH", "/nowhere")
    host = HostWithAnAgent({})
    job_results.report_to_host(host, JobReport(summary="report"), None)
    job_results.report_to_host(host, REPORT, None)
    (line,) = capsys.readouterr().err.splitlines()
    assert line.endswith("not shown beside the job: some-agent was not found")


SECRETS = {"TUNEGATE_GITHUB_TOKEN": "ghs_abcdef", "AWS_SECRET_ACCESS_KEY": "ghs_abcdefgh"}


def test_the_annotation_stands_at_the_place_that_the_text_is_about() -> None:
    found = job_results.job_problem(
        ["tunegate.yaml: bad"], 2, {}, job_results.ConfigPlace("a b,c.yaml", 7)
    )
    assert command_of(found.annotation()) == (
        "::error file=a b%2Cc.yaml,line=7,title=tunegate::tunegate.yaml: bad"
    )
    assert "in <code>a b,c.yaml:7</code>" in found.markdown()
    assert (
        command_of(job_results.job_problem(["bad"], 2, {}).annotation())
        == "::error title=tunegate::bad"
    )


@pytest.mark.parametrize("text", ["x ghs_abcdef y", "ghs_abcdefgh", "https://me:ghs_abcdef@host/p"])
def test_no_value_of_a_variable_that_is_named_like_a_secret_is_shown(text: str) -> None:
    shown = job_results.job_problem([text], 2, SECRETS)
    assert "ghs_" not in shown.annotation().text + shown.markdown()
    assert "***" in shown.lines[0]


def test_a_name_in_no_encoding_can_be_written_to_every_file() -> None:
    assert job_results.job_problem(["m\udcff.onnx"], 2, {}).lines == ("m\\udcff.onnx",)


def test_a_quoted_text_is_no_markup_in_the_summary() -> None:
    shown = job_results.job_problem(["</pre><img src=x>\n## Pass"], 2, {}).markdown()
    assert "<img" not in shown
    assert "\n## Pass" not in shown
    assert "exit code 2: what was asked for cannot be used" in shown


BEGUN = JobProgress(name=".tunegate", commit="a" * 40)
FORBIDDEN = replace(
    verdict("fail", 1, finding("pass", "")),
    policy_changes=make_report("loosened").verdict.policy_changes,
    policy_fails=True,
)


@pytest.mark.parametrize(
    ("exit_code", "found", "outcome"),
    [
        (0, verdict("pass", 0, finding("pass", "")), "passed"),
        (0, verdict("pass", 0), "nothing to check"),
        (0, None, "failed"),
        (1, verdict("fail", 1, finding("fail", "slower")), "failed"),
        (1, FORBIDDEN, "waits"),
        (2, None, "failed"),
        (3, verdict("inconclusive", 3, finding("inconclusive", "")), "waits"),
        (4, None, "failed"),
        (5, None, "waits"),
        (70, None, "failed"),
        (130, None, "cancelled"),
    ],
)
def test_every_exit_code_has_an_outcome_and_only_a_pass_is_green(
    exit_code: int, found: Verdict | None, outcome: str
) -> None:
    assert job_results.conclude(BEGUN, exit_code, found).outcome == outcome


@given(st.text())
def test_an_annotation_is_one_printable_line_whatever_is_in_it(text: str) -> None:
    line = log_line(Annotation(level="error", title=text, text=text, file=text, line=3))
    assert line.isprintable()


# The report of a fork, which another job comments.


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
