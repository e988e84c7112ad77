"""`tunegate warm` in a real repository, and what the runs after it pay."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.support.small_onnx import conv_model, matmul_model, save
from tests.support.workspace import COMPILED, CONFIG, UNDECIDED_GATE, Workspace

pytestmark = pytest.mark.e2e

TWO_RUNTIMES = CONFIG.replace("trials: 2", "trials: 0") + UNDECIDED_GATE + "  inconclusive: warn\n"


def test_warm_tunes_what_is_configured_once_and_new_weights_never(tmp_path: Path) -> None:
    workspace = Workspace(tmp_path / "w", COMPILED)
    save(conv_model(channels=16, out=32, size=14, seed=5), workspace.root / "models" / "m.onnx")
    workspace.commit()
    cold = json.loads(workspace.tunegate("plan", "--base", "HEAD~1", "--json").stdout)
    assert not any(task["trials"] for shard in cold["shards"] for task in shard["tasks"])
    assert "for tunegate warm" in cold["notes"][0]
    first = json.loads(workspace.tunegate("warm", "--trials", "24", "--json").stdout)
    assert 0 < first["tuning"]["trials"] <= 24
    assert (first["left"], first["is_published"]) == (0, True)
    second = json.loads(workspace.tunegate("warm", "--json").stdout)
    assert all(each["known_before"] == each["tasks"] for each in second["models"]), second
    assert second["tuning"]["trials"] == 0
    opened = workspace.root / ".tunegate" / "work" / "compile" / "tvm" / "compiler.log"
    assert opened.exists()
    planned = json.loads(workspace.tunegate("plan", "--base", "HEAD~1", "--json").stdout)
    assert planned["notes"] == []
    assert not opened.exists()
    assert tasks_of(planned) == tasks_of(cold)


def tasks_of(plan: dict[str, Any]) -> list[Any]:
    return [each["task"] for each in plan["resolution"]["tasks"]]


def test_warm_takes_the_models_that_a_glob_names(tmp_path: Path) -> None:
    workspace = Workspace(tmp_path / "w", COMPILED)
    save(matmul_model(rows=32, inner=64, columns=64), workspace.root / "models" / "n.onnx")
    workspace.commit()
    unknown = workspace.tunegate("warm", "--model", "models/other*")
    assert unknown.returncode == 2
    assert "matches no configured model" in unknown.stderr
    unwritten = workspace.tunegate("warm", "--cache-mode", "ro")
    assert unwritten.returncode == 2
    assert "keeps nothing of what warm learns" in unwritten.stderr
    config = workspace.root / "tunegate.yaml"
    config.write_text(config.read_text() + "# more\n")
    done = workspace.tunegate("warm", "--model", "models/n*", "--json")
    assert [each["model"] for each in json.loads(done.stdout)["models"]] == ["models/n.onnx"]
    assert "tunegate.yaml is read as it is here, with what is not committed" in done.stderr


@pytest.mark.pipelines
def test_what_warm_elects_a_change_of_weights_builds_alone(tmp_path: Path) -> None:
    workspace = Workspace(tmp_path / "w", TWO_RUNTIMES)
    assert workspace.tunegate("warm").returncode == 0
    save(conv_model(channels=16, out=32, size=14, seed=9), workspace.root / "models" / "m.onnx")
    workspace.commit()
    done = workspace.tunegate("run", "--base", "HEAD~1")
    assert done.returncode == 0, done.stderr
    found = json.loads((workspace.root / ".tunegate" / "measurements.json").read_text())
    (built,) = found["builds"]
    for side in ("base", "head"):
        assert built[side]["choice"]["is_remembered"]
        assert len(built[side]["choice"]["times"]) > 1
    report = (workspace.root / ".tunegate" / "report.md").read_text()
    assert "remembered from 20" in report
