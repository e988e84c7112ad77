from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from tests.support.small_onnx import one_node_model, save

_PROGRAM = """
import sys
from tunegate.edges.onnx_runtime import onnxruntime
session = onnxruntime.InferenceSession(sys.argv[1], providers=["CPUExecutionProvider"])
print(session.get_inputs()[0].name)
"""


def test_nothing_is_kept_to_be_told_to_its_maker(tmp_path: Path) -> None:
    model = save(one_node_model("Relu"), tmp_path / "m.onnx")
    home = tmp_path / "home"
    home.mkdir()
    variables = {**os.environ, "HOME": str(home), "ORT_DISABLE_TELEMETRY": "0"}
    command = [sys.executable, "-c", _PROGRAM, str(model)]
    done = subprocess.run(command, env=variables, capture_output=True, text=True, check=True)
    assert done.stdout == "x\n"
    assert list(home.rglob("*")) == []
