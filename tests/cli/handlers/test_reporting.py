from __future__ import annotations

import json
from pathlib import Path

import msgspec
import pytest

from tests.support import reports
from tunegate.cli.handlers.reporting import finish, write_renderings
from tunegate.settings import Settings
from tunegate.system.output.log_file import talking

REPORT = reports.slowed()


def test_a_report_is_written_in_all_its_forms(tmp_path: Path) -> None:
    write_renderings(REPORT, tmp_path)
    names = {path.name for path in tmp_path.iterdir()}
    assert {"report.md", "report.html", "junit.xml", "sarif.json"} <= names


@pytest.mark.parametrize("exit_code", [0, 1, 3])
def test_the_exit_code_is_that_of_the_verdict(tmp_path: Path, exit_code: int) -> None:
    verdict = msgspec.structs.replace(REPORT.verdict, exit_code=exit_code)
    report = msgspec.structs.replace(REPORT, verdict=verdict)
    assert finish(report, Settings(out=tmp_path)) == exit_code


def test_talk_goes_to_stderr_and_only_json_that_was_asked_for_to_stdout(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    finish(REPORT, Settings(out=tmp_path))
    shown = capsys.readouterr()
    assert shown.out == ""
    assert str(tmp_path / "report.html") in shown.err
    finish(REPORT, Settings(out=tmp_path, as_json=True))
    assert json.loads(capsys.readouterr().out)["status"] == REPORT.verdict.status


@pytest.mark.parametrize(
    ("quiet", "exit_code", "lines"), [(True, 1, 1), (True, 0, 0), (False, 1, 0)]
)
def test_a_quiet_command_says_what_its_exit_code_is_about(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], *, quiet: bool, exit_code: int, lines: int
) -> None:
    verdict = msgspec.structs.replace(REPORT.verdict, exit_code=exit_code)
    with talking() as talk:
        talk.begin(quiet=quiet, verbose=False, log=None)
        finish(msgspec.structs.replace(REPORT, verdict=verdict), Settings(out=tmp_path))
    shown = capsys.readouterr().err
    told = [line for line in shown.splitlines() if line.startswith("tunegate: fail: ")]
    assert len(told) == lines
    assert (len(shown.splitlines()) == lines) == quiet
