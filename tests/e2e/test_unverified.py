"""A run that may not measure anything builds with what similar layers have, and says so."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.support.small_onnx import conv_model, save
from tests.support.workspace import COMPILED, FIRST_ANALYSIS, Workspace

pytestmark = pytest.mark.e2e


def test_transferred_schedules_without_a_budget_are_said_to_be_unverified(tmp_path: Path) -> None:
    config = COMPILED.replace("trials: 2", "trials: 4") + FIRST_ANALYSIS
    workspace = Workspace(tmp_path / "w", config)
    # With three channels out no default schedule is good, so that any other one is used.
    workspace.begin_with(conv_model(channels=16, out=3, size=28))
    for stage in ("plan", "tune"):
        tuned = workspace.tunegate(stage)
        assert tuned.returncode == 0, tuned.stderr
    wider = conv_model(channels=16, out=3, size=30)
    save(wider, workspace.root / "models" / "wider.onnx")
    workspace.commit()
    done = workspace.tunegate("run", "--base", "HEAD~1", "--minutes", "0", "--json")
    verdict = json.loads(done.stdout)
    assert verdict["tuning"]["trials"] == 0
    assert verdict["tuning"]["transfer"] >= 1
    report = (workspace.root / ".tunegate" / "report.md").read_text()
    measured = json.loads((workspace.root / ".tunegate" / "measurements.json").read_text())
    head = measured["builds"][0]["head"]
    transferred = [task for task in head["tasks"] if task["source"] == "transfer"]
    # One that was slower in the model than the default schedule is left out, and the report says
    # so: which of the two it is, the machine decides.
    assert bool(transferred) == ("a schedule of another shape: it was never measured" in report)
    assert bool(head["dropped"]) == ("slower in the model with their schedules" in report)
    assert transferred or head["dropped"]
    assert all(not task["verified"] and task["ms"] is None for task in transferred)
