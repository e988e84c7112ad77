import os
from collections.abc import Mapping
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from tests.report.budgeted import AFTER, BEFORE
from tests.support.report_parts import finding, verdict
from tests.support.reports import make_report
from tunegate.artifacts import artifact_io
from tunegate.artifacts.builds import ShippedErrors
from tunegate.artifacts.changes import PolicyChange
from tunegate.artifacts.verdicts import Status, Verdict
from tunegate.ci import job_results
from tunegate.ci.github.host import command_of
from tunegate.ci.host_files import log_line
from tunegate.ci.protocol import AgentCommand, Annotation, JobProgress, JobReport
from tunegate.ci.registry import NoCiHost
from tunegate.report.escape import code_element, prose
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
