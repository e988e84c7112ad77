"""A slowdown that was agreed on, in a repository."""

from __future__ import annotations

import datetime
import json
from pathlib import Path

import pytest

from tests.support.small_onnx import conv_model, save
from tests.support.workspace import FIRST_ANALYSIS, NOT_COMPILED, Workspace

pytestmark = pytest.mark.e2e

WAIVER = """waivers:
  - model: models/m.onnx
    target: cpu
    ceiling-percent: 100000
    expires: {expires}
    issue: https://example.com/17
    reason: agreed
"""


def test_a_slowdown_with_a_waiver_passes_and_a_bad_waiver_stops_the_run(tmp_path: Path) -> None:
    """Judged since a release: its margin is another one, and the same waiver holds."""
    workspace = Workspace(tmp_path / "w", NOT_COMPILED + FIRST_ANALYSIS)
    workspace.git("tag", "v1")
    save(conv_model(channels=16, out=32, size=42), workspace.root / "models" / "m.onnx")
    today = datetime.datetime.now(tz=datetime.UTC).date()
    later = today + datetime.timedelta(days=30)
    workspace.write("tunegate-waivers.yaml", WAIVER.format(expires=later))
    workspace.commit()
    workspace.commit()  # which changes nothing, and would pass alone
    done = workspace.tunegate("run", "--since-release", "--json")
    assert done.returncode == 0, done.stderr
    verdict = json.loads(done.stdout)
    assert verdict["status"] == "waived"
    assert (verdict["margin_percent"], verdict["revisions"]["release"]) == (5, "v1")
    assert "over the 5% margin" in verdict["findings"][0]["reason"]
    assert "waived up to" in " ".join(done.stderr.split())
    workspace.write("tunegate-waivers.yaml", WAIVER.format(expires=today.replace(year=2199)))
    workspace.commit()
    refused = workspace.tunegate("run", "--base", "HEAD~3")
    assert refused.returncode == 2
    assert "over 90 days ahead" in refused.stderr
