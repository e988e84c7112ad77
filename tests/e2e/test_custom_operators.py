"""Operators of a real library, onnxruntime-extensions, gated as a user does."""

import json
from pathlib import Path

import pytest

from tests.support.custom_operators import custom_model, named_library
from tests.support.small_onnx import save
from tests.support.workspace import FIRST_ANALYSIS, NOT_COMPILED, Workspace

pytestmark = pytest.mark.e2e


def gate(workspace: Workspace) -> tuple[int, dict[str, object], list[str]]:
    """Returns the exit code, the finding, and the rules that count once merged."""
    done = workspace.tunegate("run", "--json")
    verdict = json.loads(done.stdout)
    (finding,) = verdict["findings"]
    later = [each["key"] for each in verdict["policy_changes"] if each["counts"] == "once merged"]
    return done.returncode, finding, later


def test_a_library_counts_once_merged_and_slower_layers_fail_a_model(tmp_path: Path) -> None:
    library = named_library()
    workspace = Workspace(tmp_path / "w", NOT_COMPILED + FIRST_ANALYSIS)
    model = workspace.root / "models" / "m.onnx"
    save(custom_model(2), model)
    workspace.commit()

    save(custom_model(3), model)
    workspace.write("tunegate.yaml", NOT_COMPILED + FIRST_ANALYSIS + library)
    workspace.commit()
    code, finding, later = gate(workspace)
    assert (code, later) == (2, ["custom-operators"])
    assert "name it under custom-operators, which counts once merged" in str(finding["reason"])

    save(custom_model(30), model)
    workspace.commit()
    code, finding, later = gate(workspace)
    assert (code, finding["status"], later) == (1, "fail", [])
    assert "Inverse" in json.dumps(finding)
