from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest

from tunegate.ci.job_results import report_to_host
from tunegate.ci.none_host import NoCiHost
from tunegate.ci.protocol import AgentCommand, JobReport
from tunegate.system.output.directory import opened_output
from tunegate.system.output.owned_directory import held_directory

REPORT = JobReport(outputs={"verdict": "pass"})


class HostWithAnAgent(NoCiHost):
    """A CI whose agent shows the summary."""

    def tell(  # type: ignore[override]  # none of its own has an agent
        self, report: JobReport
    ) -> AgentCommand | None:
        if not report.summary:
            return None
        return AgentCommand(program="some-agent", arguments=("annotate",), text=report.summary)


def files_of(out: Path) -> Mapping[str, str]:
    return {path.name: path.read_text() for path in out.glob("ci-*")} if out.exists() else {}


def test_files_go_to_a_directory_of_ours_and_the_next_run_forgets_them(tmp_path: Path) -> None:
    out = tmp_path / "out"
    with opened_output(out, "run"):
        pass
    report_to_host(NoCiHost({}), REPORT, out)
    assert "ci-outputs.json" in files_of(out)
    with opened_output(out, "gate") as directory:
        directory.forget(since="gate")
    assert files_of(out) == {}


def test_a_directory_of_somebody_else_gets_no_file(tmp_path: Path) -> None:
    (tmp_path / "thesis.tex").touch()
    report_to_host(NoCiHost({}), REPORT, tmp_path)
    report_to_host(NoCiHost({}), REPORT, tmp_path / "not there")
    assert files_of(tmp_path) == {}
    assert not (tmp_path / "not there").exists()


def test_no_file_gets_between_those_of_another_run(tmp_path: Path) -> None:
    out = tmp_path / "out"
    with opened_output(out, "run"):
        pass
    with held_directory(out, "another"):
        report_to_host(NoCiHost({}), REPORT, out)
    assert files_of(out) == {}


def test_a_file_that_cannot_be_written_is_one_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "out"
    with opened_output(out, "run"):
        pass
    (out / "ci-summary.md").mkdir()
    report_to_host(NoCiHost({}), REPORT, out)
    assert capsys.readouterr().err.count("\n") <= 1


def test_what_a_hosts_agent_cannot_do_is_one_line_and_changes_nothing(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("PATH", "/nowhere")
    host = HostWithAnAgent({})
    report_to_host(host, JobReport(summary="report"), None)
    report_to_host(host, REPORT, None)
    (line,) = capsys.readouterr().err.splitlines()
    assert line.endswith("not shown beside the job: some-agent was not found")
