"""The action with no package of these tests: its own environment, from the package index."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import time
from pathlib import Path

import numpy as np
import pytest
from onnx import numpy_helper

from tests.support.git_repository import new_repository
from tests.support.small_onnx import conv_model

BOOTSTRAP = Path(__file__).resolve().parents[3] / "action" / "bootstrap.py"
pytestmark = [pytest.mark.pipelines, pytest.mark.timeout(900)]
CONFIG = """\
models:
  - path: models/*.onnx
targets:
  - name: cpu
    threads: 1
    runtime: onnxruntime
cache:
  url: cache
gate:
  seconds: 10
"""


def test_a_gate_under_one_runtime_installs_no_compiler_and_judges(tmp_path: Path) -> None:
    origin = new_repository(tmp_path / "workspace")
    base = origin.commit({"tunegate.yaml": CONFIG.encode(), "models/m.onnx": model(0)})
    head = origin.commit({"models/m.onnx": model(1)})
    first, cold_seconds = ended(tmp_path, base, head)
    assert "run-onnxruntime.lock" in first
    assert "by uv (" in first
    _, warm_seconds = ended(tmp_path, base, head)
    (environment,) = (tmp_path / "tools" / "tunegate" / "env").glob("*/lib/*/site-packages")
    assert (environment / "onnxruntime").is_dir()
    assert not (environment / "tvm").exists()
    print(f"cold {cold_seconds:.1f} s, warm {warm_seconds:.1f} s")


def ended(directory: Path, base: str, head: str) -> tuple[str, float]:
    """What the action said, and the seconds until it worked in its environment."""
    pushed = {"ref": "refs/heads/main", "before": base, "after": head}
    repository = {"default_branch": "main", "full_name": "acme/models"}
    event = directory / "event.json"
    event.write_text(json.dumps({**pushed, "repository": repository}))
    job = subprocess.Popen(
        [shutil.which("python3", path="/usr/bin:/bin") or "python3", "-I", str(BOOTSTRAP), "run"],
        cwd=directory / "workspace",
        env={
            **{name: value for name, value in os.environ.items() if name != "VIRTUAL_ENV"},
            "RUNNER_TOOL_CACHE": str(directory / "tools"),
            "GITHUB_EVENT_NAME": "push",
            "GITHUB_EVENT_PATH": str(event),
            "GITHUB_REPOSITORY": "acme/models",
            "GITHUB_OUTPUT": str(directory / "output"),
        },
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    began = time.monotonic()
    said, seconds = "", 0.0
    with job:
        for line in job.stdout or ():
            said += line
            if "the environment" in line and " s)" in line:
                seconds = time.monotonic() - began
    assert job.returncode in {0, 3}, said
    assert "installation is damaged" not in said
    return said, seconds


def model(added: float) -> bytes:
    made = conv_model()
    weights = made.graph.initializer[0]
    values = numpy_helper.to_array(weights) + np.float32(added)
    weights.CopyFrom(numpy_helper.from_array(values, weights.name))
    return bytes(made.SerializeToString())
