from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.workspace import Workspace
from tunegate.cli import main
from tunegate.edges.output.directory import opened_output

RESULTS = ("plan.json", "verdict.json", "report.md", "report.html", "junit.xml", "changes.json")


@pytest.fixture
def out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Of a run that has ended."""
    workspace = Workspace(tmp_path / "w")
    monkeypatch.chdir(workspace.root)
    with opened_output(workspace.root / ".tunegate", "run") as opened:
        for name in RESULTS:
            (opened.path / name).write_text("of the last run")
    return opened.path


@pytest.mark.parametrize(
    "command",
    [
        ("compare", "nope.onnx", "x.onnx"),
        ("compare", ".tunegate", ".tunegate"),
        ("compare", "models/m.onnx", ".tunegate"),
        ("compare", "--commands", "--metric-command", "echo", "echo 1", "echo 1"),
        ("compare", "--config", "nope.yaml", "models/m.onnx", "models/m.onnx"),
        ("run", "--base", "nowhere"),
        ("run", "--config", "nope.yaml"),
        ("plan", "--base", "nowhere"),
        ("detect", "--base", "nowhere"),
        ("gate", "--config", "nope.yaml"),
        ("gate",),
        ("tune", "--shard", "9"),
        ("confirm", "nope.json", ".tunegate/verdict.json"),
        ("selftest", "--config", "nope.yaml"),
    ],
    ids=" ".join,
)
def test_a_command_that_cannot_begin_removes_nothing(command: tuple[str, ...], out: Path) -> None:
    assert main(command) == 2
    assert {(out / name).read_text() for name in RESULTS} == {"of the last run"}
