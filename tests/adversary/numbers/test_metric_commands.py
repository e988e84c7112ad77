"""Attempts to run a command on the runner, or to have an own one judge, by `metric-command`."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from tests.adversary.numbers.test_wrong_numbers import of_int8, product
from tests.adversary.pull_request import PullRequest
from tests.support.small_onnx import save

pytestmark = pytest.mark.e2e

CONFIG = """\
models:
  - path: models/loose.onnx
    accuracy: {{metric-command: {{run: {python} tools/measure.py, at-most: 1000}}}}
  - path: models/*.onnx
    accuracy: {{metric-command: {{run: {python} tools/measure.py, at-most: 0.000001}}}}
targets: [{{name: cpu, runtime: onnxruntime, threads: 1}}]
cache: {{url: cache}}
budget: {{trials: 0}}
gate: {{pairs: 4, seconds: 5}}
"""
MEASURE = """\
import sys
from pathlib import Path
import numpy as np
for file in sorted(Path(sys.argv[1]).glob("*.npz")):
    with np.load(file) as case:
        print(abs(case["candidate_0"] - case["reference_0"]).max())
"""
TIGHT, LOOSE, NEW = "models/m.onnx", "models/loose.onnx", "more/new.onnx"


def test_a_pull_request_neither_runs_a_command_nor_changes_what_one_says(tmp_path: Path) -> None:
    pull_request = PullRequest(tmp_path, CONFIG.format(python=sys.executable))
    pull_request.write("tools/measure.py", MEASURE)
    for path in (TIGHT, LOOSE):
        save(product(), pull_request.root / path)
    pull_request.commit_base()
    marker = tmp_path / "marker"
    run = f"touch {marker}"
    for path in (TIGHT, LOOSE, NEW):
        save(product(("Neg", {})), pull_request.root / path)
    pull_request.write("tools/measure.py", f"open({str(marker)!r}, 'w'); print('0 ' * 74)")
    pull_request.edit_config(f"run: {sys.executable} tools/measure.py", f"run: {run}")
    pull_request.edit_config("0.000001", "1000")
    own = f"  - path: more/*\n    accuracy: {{metric-command: {{run: {run}, at-most: 1000}}}}\n"
    pull_request.edit_config("targets:", f"{own}targets:")
    judged = pull_request.judge()
    assert not marker.exists()
    tight, loose = (of_int8(judged, path) for path in (TIGHT, LOOSE))
    assert not tight["ships"]
    assert "has a metric of" in tight["reason"]
    assert "the budget is 1e-06" in tight["reason"]
    assert loose["ms"] > 0
    (finding,) = [each for each in judged.verdict["findings"] if each["model"] == NEW]
    assert [each["candidate"] for each in finding.get("runtimes", [])] in ([], ["onnxruntime"])
    told = {
        (change["model"], change["effect"], change["counts"])
        for change in judged.verdict["policy_changes"]
        if "metric-command" in change["key"]
    }
    assert ("more/*", "changed", "once merged") in told
    assert (TIGHT, "changed", "once merged") in told or (
        "models/*.onnx",
        "changed",
        "once merged",
    ) in told
