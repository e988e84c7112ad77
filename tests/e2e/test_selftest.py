"""The self-test on this very machine, cut short."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.support.workspace import FIRST_ANALYSIS, NOT_COMPILED, Workspace
from tunegate.cli.main import main
from tunegate.measure import pair_bench
from tunegate.measure import selftest as gate_trials

pytestmark = pytest.mark.e2e


def test_it_measures_this_machine_and_says_what_it_can_decide(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Real processes, but few of them, and each is soon warm."""
    monkeypatch.setattr(pair_bench, "WARM_UP_SECONDS", 0.05)
    monkeypatch.setattr(gate_trials, "INJECTED_PERCENT", (0.0, 10.0))
    monkeypatch.setattr(gate_trials, "_FEWEST", 4)
    workspace = Workspace(tmp_path / "w", NOT_COMPILED + FIRST_ANALYSIS)
    monkeypatch.chdir(workspace.root)
    line = ["selftest", "--model", "models/m.onnx", "--minutes", "0.05", "--json"]
    assert main(line) in {0, 4}
    found = json.loads(capsys.readouterr().out)
    assert found["aa_launches"] >= 1
    assert [each["percent"] for each in found["injected"]] == [0.0, 10.0]


def test_a_model_that_cannot_run_is_one_clear_line(tmp_path: Path) -> None:
    workspace = Workspace(tmp_path / "w")
    workspace.write("text.onnx", "nonsense")
    done = workspace.tunegate("selftest", "--model", "text.onnx")
    assert done.returncode == 2
    assert "text.onnx: not a valid ONNX model" in done.stderr
