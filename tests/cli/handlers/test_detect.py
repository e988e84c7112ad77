from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.support.small_onnx import conv_model, save
from tests.support.workspace import NOT_COMPILED, Workspace
from tunegate.artifacts import artifact_io
from tunegate.artifacts.changes import ChangeSet
from tunegate.cli.main import main


@pytest.fixture
def workspace(tmp_path: Path) -> Workspace:
    """A repository whose last commit has changed the weights of its only model."""
    workspace = Workspace(tmp_path / "w", NOT_COMPILED)
    save(conv_model(seed=2, channels=16, out=32, size=14), workspace.root / "models" / "m.onnx")
    workspace.commit()
    return workspace


def detect(workspace: Workspace, *line: str) -> int:
    where = ("--repository", str(workspace.root), "--out", str(workspace.root / ".tunegate"))
    return main(["detect", *where, "--base", "HEAD~1", *line])


def test_what_a_change_touches_is_shown_and_written(
    workspace: Workspace, capsys: pytest.CaptureFixture[str]
) -> None:
    assert detect(workspace) == 0
    shown = capsys.readouterr().out
    assert "models/m.onnx: modified, weights-only" in shown
    assert "0 unchanged" in shown
    written = artifact_io.read(workspace.root / ".tunegate" / "changes.json", ChangeSet)
    assert [change.path for change in written.models] == ["models/m.onnx"]


def test_json_is_the_artifact_and_nothing_else(
    workspace: Workspace, capsys: pytest.CaptureFixture[str]
) -> None:
    assert detect(workspace, "--json") == 0
    (change,) = json.loads(capsys.readouterr().out)["models"]
    assert (change["kind"], change["change"]) == ("modified", "weights-only")


def test_the_hook_of_a_push_writes_nothing(
    workspace: Workspace, capsys: pytest.CaptureFixture[str]
) -> None:
    assert detect(workspace, "--pushed") == 0
    assert "models/m.onnx: modified, weights-only" in capsys.readouterr().out
    assert not (workspace.root / ".tunegate").exists()
