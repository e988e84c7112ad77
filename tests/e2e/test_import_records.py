"""A stock database on its way into the cache, as a user runs it."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.e2e.test_promote import records
from tests.support.models import stock_tvm
from tests.support.small_onnx import conv_model
from tests.support.workspace import CONFIG, Workspace

pytestmark = pytest.mark.e2e


def stock_database(workspace: Workspace, directory: Path) -> Path:
    """Written by plain TVM, for other names, another machine and another number of cores."""
    directory.mkdir()
    made = subprocess.run(
        [sys.executable, stock_tvm.__file__, "models/m.onnx", str(directory)],
        cwd=workspace.root,
        capture_output=True,
        text=True,
        check=False,
    )
    assert made.returncode == 0, made.stderr[-2000:]
    return directory / "database_tuning_record.json"


def test_what_a_stock_database_knows_is_measured_here_first(tmp_path: Path) -> None:
    target = "targets:\n  - name: cpu\n    layout: nchw\n    runtime: tvm\n    threads: 1\n"
    workspace = Workspace(tmp_path / "w", target + CONFIG.replace("trials: 2", "trials: 6"))
    # With three pixels in a row no default schedule is good, so that any other one is taken.
    workspace.begin_with(conv_model(channels=64, out=64, size=3))
    file = stock_database(workspace, tmp_path / "stock")
    honest = file.read_text().splitlines()
    code = json.loads(honest[0])
    code[1][0][0].append(["Annotate", ["b1", '"#error"'], ["pragma_import_c"], []])
    no_tile = json.loads(honest[1])
    no_tile[1][0][1][0][1] = [5, 1, 1, 1]
    lies = [
        json.dumps(code),
        json.dumps(no_tile),
        "[" * 100_000,
        "{}",
        "[0,[[[],[]],[-1.0],{},[]]]",
    ]
    file.write_text("\n".join([*lies, *honest]))
    imported = workspace.tunegate("cache", "import", str(tmp_path / "stock"), "--json")
    assert imported.returncode == 0, imported.stderr
    found = json.loads(imported.stdout)
    assert found["read"] == len(honest) + len(lies)
    assert found["refused"] == {"not a tuning record": 2, "no time was measured": 1}
    assert 1 <= found["fitting"] <= len(honest)
    (task,) = found["tasks"]
    assert task["status"] == "taken"
    assert task["claimed_ms"] == 0.001
    assert task["measured_ms"] > 0.001
    (ours,) = records(workspace, "main")
    assert ours.source.run == "import"
    assert ours.median_ms == task["measured_ms"]
    used = workspace.tunegate("plan", "--out", "p")
    assert used.returncode == 0, used.stderr
    assert "0 shards to tune" in used.stdout


def test_a_directory_without_a_database_is_one_clear_error(tmp_path: Path) -> None:
    workspace = Workspace(tmp_path / "w")
    asked = workspace.tunegate("cache", "import", "models")
    assert asked.returncode == 2
    assert "models: holds no MetaSchedule database" in asked.stderr
