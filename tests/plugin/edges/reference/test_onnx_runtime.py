from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from tests.support.small_onnx import one_node_model, save

_PROGRAM = """
import sys
from tunegate.edges.reference.onnx_runtime import onnxruntime
session = onnxruntime.InferenceSession(sys.argv[1], providers=["CPUExecutionProvider"])
print(session.get_inputs()[0].name)
"""


_CHOOSES = """
import os, sys
os.chdir(sys.argv[2])
from tunegate.edges.reference.onnx_runtime import onnxruntime
session = onnxruntime.InferenceSession(sys.argv[1], providers=["CPUExecutionProvider"])
print(session.get_session_options().enable_profiling)
"""


def test_a_model_does_not_choose_the_settings_of_its_session(tmp_path: Path) -> None:
    """Its metadata would, where the job's environment says so."""
    model = one_node_model("Relu")
    chosen = model.metadata_props.add()
    chosen.key, chosen.value = "ort_config", '{"session_options": {"enable_profiling": 1}}'
    command = [sys.executable, "-c", _CHOOSES, str(save(model, tmp_path / "m.onnx")), str(tmp_path)]
    variables = {**os.environ, "ORT_LOAD_CONFIG_FROM_MODEL": "1"}
    done = subprocess.run(command, env=variables, capture_output=True, text=True, check=True)
    assert done.stdout == "False\n"


def test_nothing_is_kept_to_be_told_to_its_maker(tmp_path: Path) -> None:
    model = save(one_node_model("Relu"), tmp_path / "m.onnx")
    home = tmp_path / "home"
    home.mkdir()
    variables = {**os.environ, "HOME": str(home), "ORT_DISABLE_TELEMETRY": "0"}
    command = [sys.executable, "-c", _PROGRAM, str(model)]
    done = subprocess.run(command, env=variables, capture_output=True, text=True, check=True)
    assert done.stdout == "x\n"
    assert list(home.rglob("*")) == []
