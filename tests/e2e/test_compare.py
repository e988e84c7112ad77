"""One ONNX file against another, as a user runs it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.support.small_onnx import conv_model, save
from tests.support.workspace import CONFIG, Workspace

pytestmark = pytest.mark.e2e


@pytest.fixture
def workspace(tmp_path: Path) -> Workspace:
    return Workspace(tmp_path / "w", CONFIG + "gate:\n  pairs: 4\n")


def test_a_file_against_itself_passes_without_measuring(workspace: Workspace) -> None:
    done = workspace.tunegate("compare", "models/m.onnx", "models/m.onnx", "--json")
    assert done.returncode == 0, done.stderr
    (finding,) = json.loads(done.stdout)["findings"]
    assert (finding["status"], finding["launches"]) == ("pass", 0)


def test_a_model_with_much_more_work_fails_and_nothing_is_tuned(workspace: Workspace) -> None:
    save(conv_model(channels=16, out=32, size=112), workspace.root / "wide.onnx")
    done = workspace.tunegate("compare", "models/m.onnx", "wide.onnx", "--json")
    assert done.returncode == 1, done.stderr
    verdict = json.loads(done.stdout)
    assert verdict["findings"][0]["change_percent"]["low"] > 3
    assert verdict["tuning"]["trials"] == 0


def test_a_name_with_brackets_keeps_its_shapes(workspace: Workspace) -> None:
    odd = workspace.root / "m[v2].onnx"
    odd.write_bytes((workspace.root / "models" / "m.onnx").read_bytes())
    done = workspace.tunegate("compare", str(odd), str(odd), "--shape", "no_such_input=1")
    assert done.returncode == 2
    assert "no such input" in done.stderr


def test_no_repository_is_needed(workspace: Workspace, tmp_path: Path) -> None:
    model = str(workspace.root / "models" / "m.onnx")
    lonely = tmp_path / "lonely"
    lonely.mkdir()
    line = ["compare", model, model, "--repository", str(lonely), "--out", str(lonely / "out")]
    assert workspace.tunegate(*line).returncode == 0


def test_a_file_that_is_no_model_is_one_clear_line(workspace: Workspace) -> None:
    workspace.write("text.onnx", "nonsense")
    done = workspace.tunegate("compare", "models/m.onnx", "text.onnx")
    assert done.returncode == 2
    assert "text.onnx" in done.stderr
    assert "Traceback" not in done.stderr
