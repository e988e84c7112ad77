from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.workspace import Workspace
from tunegate.cli import main as cli
from tunegate.system.output.directory import opened_output


def test_help_and_version_are_no_errors(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["--help"]) == 0
    assert "compare" in capsys.readouterr().out
    assert cli.main(["--version"]) == 0
    assert capsys.readouterr().out.startswith("tunegate 0.")


@pytest.mark.parametrize("line", [["help", "fly"], ["fly"], ["cache"], ["run", "--nope"]])
def test_what_cannot_be_understood_is_one_line_and_a_usage_error(
    line: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert cli.main(line) == 2
    shown = capsys.readouterr()
    assert shown.err.startswith("tunegate: error: ")
    assert shown.err.count("\n") == 1
    assert shown.out == ""


def test_an_expected_error_is_one_line_without_a_traceback(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert cli.main(["detect", "--repository", str(tmp_path)]) == 2
    shown = capsys.readouterr()
    assert shown.err.startswith("tunegate: error: ")
    assert shown.err.count("\n") == 1
    assert shown.out == ""


def test_an_error_of_the_configuration_leaves_no_verdict_of_an_earlier_run(tmp_path: Path) -> None:
    """Whoever posts what lies there would post that of another commit. What took
    longer to make stays."""
    out, files = tmp_path / "out", ("verdict.json", "report.md", "report.html")
    with opened_output(out, "run"):
        for name in (*files, "plan.json", "history.html"):
            (out / name).write_text("{}")
    line = ["--repository", str(tmp_path), "--out", str(out)]
    assert cli.main(["plan", *line]) == 2
    assert {*files} <= {each.name for each in out.iterdir()}
    assert cli.main(["gate", *line]) == 2
    assert {*files} & {each.name for each in out.iterdir()} == set()
    assert {"plan.json", "history.html"} <= {each.name for each in out.iterdir()}


def test_a_bug_is_one_line_with_a_log_and_its_own_exit_code(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cli, "parse", lambda _: 1 / 0)
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    assert cli.main(["run"]) == 70
    shown = capsys.readouterr().err
    assert "a bug of tunegate (ZeroDivisionError" in shown
    log = Path(shown.partition("with the log ")[2].strip().rstrip("."))
    assert "Traceback" in log.read_text()
    log.unlink()


def test_an_early_error_waits_for_no_compiler_and_no_statistics(tmp_path: Path) -> None:
    heavy = "('tvm', 'scipy.stats', 'shtab')"
    script = (
        "import sys; import tunegate.report.html; "
        "from tunegate.cli.main import main; print(main(['run'])); "
        f"print([m for m in {heavy} if m in sys.modules])"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], cwd=tmp_path, capture_output=True, text=True, check=True
    )
    assert done.stdout.splitlines() == ["2", "[]"]


@pytest.mark.parametrize("code", [0, 1])
def test_a_command_that_judges_without_a_verdict_is_a_bug(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, code: int
) -> None:
    monkeypatch.setattr(cli, "_handler", lambda _: lambda _: code)
    assert cli.main(["run", "--out", str(tmp_path)]) == 70


def test_a_command_that_ends_the_process_has_not_judged(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cli, "_handler", lambda _: lambda _: sys.exit(0))
    assert cli.main(["run", "--out", str(tmp_path)]) == 70


def test_an_interrupt_is_cancelled(monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(cli, "parse", interrupted)
    assert cli.main(["run"]) == 130


def test_detect_says_what_changed_in_words_and_in_json(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    workspace = Workspace(tmp_path / "w")
    line = ["detect", "--repository", str(workspace.root), "--out", str(tmp_path / "out")]
    assert cli.main(line) == 0
    assert "models/m.onnx: added" in capsys.readouterr().out
    assert cli.main([*line, "--json"]) == 0
    assert '"kind": "added"' in capsys.readouterr().out
    assert (tmp_path / "out" / "changes.json").exists()


def test_quiet_leaves_the_product_and_errors(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    workspace = Workspace(tmp_path / "w")
    line = ["detect", "-q", "--repository", str(workspace.root), "--out", str(tmp_path / "out")]
    assert cli.main([*line, "--json"]) == 0
    shown = capsys.readouterr()
    assert '"kind": "added"' in shown.out
    assert shown.err == ""
    assert cli.main([*line, "--base", "nowhere"]) == 2
    assert capsys.readouterr().err.startswith("tunegate: error: ")


def test_the_log_file_tells_the_command_the_error_and_its_traceback(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MY_TOKEN", "hunter2-hunter2")
    log = tmp_path / "log"
    line = ["detect", "--repository", str(tmp_path / "hunter2-hunter2"), "--log-file", str(log)]
    assert cli.main(line) == 2
    assert capsys.readouterr().err.count("\n") == 1
    text = log.read_text()
    assert "detect --repository" in text
    assert "Traceback" in text
    assert "tunegate: error: " in text
    assert text.endswith("exit code 2\n")
    assert "hunter2" not in text


def test_a_log_file_that_cannot_be_written_stops_the_command_before_it_begins(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    workspace = Workspace(tmp_path / "w")
    log = tmp_path / "nowhere" / "log"
    out = tmp_path / "out"
    line = ["detect", "--repository", str(workspace.root), "--out", str(out), f"--log-file={log}"]
    assert cli.main(line) == 2
    assert "--log-file" in capsys.readouterr().err
    assert not out.exists()


def test_a_bug_is_reported_with_the_log_file_where_there_is_one(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cli, "_handler", lambda _: lambda _: 1 / 0)
    assert cli.main(["doctor", "--log-file", str(tmp_path / "log")]) == 70
    assert f"with the log {tmp_path / 'log'}." in capsys.readouterr().err
    assert "ZeroDivisionError" in (tmp_path / "log").read_text()


def test_an_error_shows_no_password(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("A_TOKEN", "hunter2-hunter2")
    assert cli.main(["s3://me:p@ss@host/hunter2-hunter2", "-v"]) == 2
    shown = capsys.readouterr().err
    assert "s3://***@host/***" in shown
    assert "hunter2" not in shown
    assert "p@ss" not in shown


def test_a_traceback_draws_nothing_and_begins_no_line_of_its_own(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert cli.main(["rum\x1b[31m\r\n::error::pwned", "-v"]) == 2
    shown = capsys.readouterr().err
    assert "Traceback" in shown
    assert "\x1b" not in shown
    assert not any(line.startswith("::") for line in shown.splitlines())


def test_a_job_of_a_ci_is_refused_as_its_event_says_without_being_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("GITLAB_CI", "true")
    monkeypatch.setenv("CI_PIPELINE_SOURCE", "chat")
    line = ["run", "--repository", str(tmp_path)]
    assert cli.main(line) == 2
    assert "event chat is refused" in capsys.readouterr().err
    assert cli.main([*line, "--ci", "none"]) == 2
    assert "not a git repository" in capsys.readouterr().err
