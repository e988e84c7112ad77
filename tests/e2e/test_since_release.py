"""What came little by little since a release, judged together."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.support.small_onnx import conv_model, save
from tests.support.workspace import NOT_COMPILED, Workspace

pytestmark = pytest.mark.e2e


def test_a_slowdown_since_the_release_fails_where_the_last_change_passes(tmp_path: Path) -> None:
    gate = "gate:\n  pairs: 4\n  release-margin-percent: 7\n"
    workspace = Workspace(tmp_path / "w", NOT_COMPILED + gate)
    workspace.git("tag", "v1")
    save(conv_model(channels=16, out=32, size=112), workspace.root / "models" / "m.onnx")
    workspace.commit()
    workspace.commit()  # which changes nothing
    assert workspace.tunegate("run", "--base", "HEAD~1").returncode == 0
    done = workspace.tunegate("run", "--since-release", "--json")
    assert done.returncode == 1, done.stderr
    verdict = json.loads(done.stdout)
    assert verdict["margin_percent"] == 7
    assert verdict["revisions"]["release"] == "v1"
    assert "over the 7 % margin" in verdict["findings"][0]["reason"]
