from __future__ import annotations

import json
from pathlib import Path

from tunegate.ci_hosts.host_files import PREFIX, variables, write, write_json


def test_files_for_a_ci_are_known_by_their_name(tmp_path: Path) -> None:
    write(tmp_path, "summary.md", "text")
    write_json(tmp_path, "outputs.json", {"model": "é"})
    assert sorted(path.name for path in tmp_path.iterdir()) == ["ci-outputs.json", "ci-summary.md"]
    assert PREFIX == "ci-"
    content = (tmp_path / "ci-outputs.json").read_text()
    assert "é" in content
    assert json.loads(content) == {"model": "é"}


def test_a_variable_is_one_line_of_plain_characters() -> None:
    values = {
        "status": "pass",
        "empty": "",
        "lines": "a\nb",
        "words": "a b",
        "accent": "é",
        "command": "$(id)",
        "quoted": "'a'",
        "path": "out/report.html",
    }
    assert variables(values, limit_bytes=1000) == (
        "TUNEGATE_STATUS=pass\nTUNEGATE_PATH=out/report.html\n"
    )


def test_what_does_not_fit_the_limit_is_left_out() -> None:
    line = "TUNEGATE_A=1\n"
    assert variables({"a": "1", "b": "2"}, limit_bytes=len(line)) == line
    assert variables({"long": "x" * 99, "a": "1"}, limit_bytes=len(line)) == line
    assert variables({"a": "1"}, limit_bytes=len(line) - 1) == ""
