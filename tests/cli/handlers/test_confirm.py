from __future__ import annotations

from pathlib import Path

import pytest

from tests.support import report_parts as parts
from tunegate.artifacts import artifact_io
from tunegate.artifacts.verdicts import Verdict
from tunegate.cli.main import main


def test_the_two_verdicts_make_a_third(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for name, status, code in (("a", "fail", 1), ("b", "pass", 0)):
        finding = parts.finding(status, f"seen by {name}")  # type: ignore[arg-type]
        artifact_io.write(tmp_path / f"{name}.json", parts.verdict(status, code, finding))  # type: ignore[arg-type]
    line = ["confirm", str(tmp_path / "a.json"), str(tmp_path / "b.json")]
    assert main([*line, "--out", str(tmp_path / "out")]) == 0
    assert artifact_io.read(tmp_path / "out" / "verdict.json", Verdict).status == "pass"
    assert "not confirmed on a second machine: seen by b" in capsys.readouterr().out


def test_a_missing_verdict_is_one_clear_error(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["confirm", "a.json", "b.json", "--out", str(tmp_path)]) == 2
    assert "a.json" in capsys.readouterr().err
