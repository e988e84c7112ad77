from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
from onnx import TensorProto, helper, numpy_helper

from tests.support.small_onnx import one_node_model, save
from tunegate.models.reference.onnx_runtime import exact_options, onnxruntime, timed_options

_PROGRAM = """
import sys
from tunegate.models.reference.onnx_runtime import onnxruntime
session = onnxruntime.InferenceSession(sys.argv[1], providers=["CPUExecutionProvider"])
print(session.get_inputs()[0].name)
"""


_CHOOSES = """
import os, sys
os.chdir(sys.argv[2])
from tunegate.models.reference.onnx_runtime import onnxruntime
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


def test_sums_of_int8_are_right_without_vnni() -> None:
    """Two products of 255 and 127 are more than an int16 holds."""
    weight = numpy_helper.from_array(np.full((64, 16), 127, np.int8), "w")
    node = helper.make_node("MatMulInteger", ["x", "w"], ["y"])
    given = helper.make_tensor_value_info("x", TensorProto.UINT8, [4, 64])
    made = helper.make_tensor_value_info("y", TensorProto.INT32, [4, 16])
    graph = helper.make_graph([node], "g", [given], [made], [weight])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    feed = {"x": np.full((4, 64), 255, np.uint8)}
    for options in (exact_options(), timed_options(threads=1)):
        session = onnxruntime.InferenceSession(model.SerializeToString(), options)
        assert np.all(session.run(None, feed)[0] == 64 * 255 * 127)
