"""The self-test on this very machine, cut short."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.support.workspace import NOT_COMPILED, Workspace

pytestmark = pytest.mark.e2e


def test_it_measures_this_machine_and_says_what_it_can_decide(tmp_path: Path) -> None:
    workspace = Workspace(tmp_path / "w", NOT_COMPILED + "gate:\n  pairs: 4\n  seconds: 10\n")
    line = ("selftest", "--model", "models/m.onnx", "--minutes", "0.05", "--json")
    done = workspace.tunegate(*line)
    assert done.returncode in {0, 4}, done.stderr
    found = json.loads(done.stdout)
    assert found["aa_launches"] >= 4
    assert [each["percent"] for each in found["injected"]] == [0.0, 1.0, 3.0, 5.0, 10.0]


def test_a_model_that_cannot_run_is_one_clear_line(tmp_path: Path) -> None:
    workspace = Workspace(tmp_path / "w")
    workspace.write("text.onnx", "nonsense")
    done = workspace.tunegate("selftest", "--model", "text.onnx")
    assert done.returncode == 2
    assert "text.onnx: not a valid ONNX model" in done.stderr
