from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import onnx
from onnx import TensorProto, helper

_PROGRAM = """
import sys
from tunegate.edges.onnx_runtime import onnxruntime
session = onnxruntime.InferenceSession(sys.argv[1], providers=["CPUExecutionProvider"])
print(session.get_inputs()[0].name)
"""


def test_nothing_is_kept_to_be_told_to_its_maker(tmp_path: Path) -> None:
    model = tmp_path / "m.onnx"
    opsets = [helper.make_opsetid("", 17)]
    values = [helper.make_tensor_value_info(name, TensorProto.FLOAT, [1]) for name in ("x", "y")]
    graph = helper.make_graph([helper.make_node("Relu", ["x"], ["y"])], "g", values[:1], values[1:])
    onnx.save(helper.make_model(graph, opset_imports=opsets, ir_version=10), model)
    home = tmp_path / "home"
    home.mkdir()
    variables = {**os.environ, "HOME": str(home), "ORT_DISABLE_TELEMETRY": "0"}
    command = [sys.executable, "-c", _PROGRAM, str(model)]
    done = subprocess.run(command, env=variables, capture_output=True, text=True, check=True)
    assert done.stdout == "x\n"
    assert list(home.rglob("*")) == []
